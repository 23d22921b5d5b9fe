// One file, everything inside: the policy names the script and the style by their hashes, and allows nothing else.
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const sha256 = (text) => createHash('sha256').update(text, 'utf8');
const source = (text) => `'sha256-${sha256(text).digest('base64')}'`;

const bundled = await build({
  entryPoints: [join(here, 'src/page.ts')],
  absWorkingDir: here,
  bundle: true,
  write: false,
  format: 'iife',
  target: ['es2022'],
  minify: true,
  charset: 'ascii',
  legalComments: 'none',
});
const script = bundled.outputFiles[0].text;
const style = readFileSync(join(here, 'src/style.css'), 'utf8');
// Either would end its element early, and the hash would no longer be that of what the browser runs.
if (/<\/script|<!--/i.test(script) || /<\/style/i.test(style)) throw new Error('the bundle closes its own element');

const policy = [
  "default-src 'none'",
  `script-src ${source(script)}`,
  `style-src ${source(style)}`,
  "base-uri 'none'",
  "form-action 'none'",
  "require-trusted-types-for 'script'",
].join('; ');

const values = { POLICY: policy, STYLE: style, SCRIPT: script };
const page = readFileSync(join(here, 'src/index.html'), 'utf8').replace(/%%(\w+)%%/g, (_, name) => {
  if (!(name in values)) throw new Error(`nothing is called ${name}`);
  return values[name];
});
mkdirSync(join(here, 'dist'), { recursive: true });
writeFileSync(join(here, 'dist/index.html'), page);
console.log(`dist/index.html ${page.length} characters, sha256 ${sha256(page).digest('hex')}`);
