// Builds the page as one file with everything inside. Its policy names the script and the style by
// their hashes, and allows nothing else but connections to relays. The page narrows these to its
// bot's relays as soon as it knows them.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { parse, serialize } from 'parse5';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { tables } from './texts.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const read = (name) => readFileSync(join(here, name), 'utf8');
const sha256 = (text) => createHash('sha256').update(text, 'utf8');
const source = (text) => `'sha256-${sha256(text).digest('base64')}'`;

// What age can do besides passphrases: the page needs none of it, and half of age's size is that.
const ABSENT = Object.fromEntries(
  ['@noble/post-quantum/hybrid.js', '@noble/curves/ed25519.js', '@noble/curves/nist.js'].map((name) => [name, './src/absent.ts']));

async function bundled(name, define = {}) {
  const done = await build({
    entryPoints: [join(here, name)],
    absWorkingDir: here,
    bundle: true,
    write: false,
    format: 'iife',
    target: ['es2022'],
    minify: true,
    charset: 'utf8',
    alias: ABSENT,
    legalComments: 'none',
    define,
  });
  return done.outputFiles[0].text;
}
// The worker's script is a text in the page's script.
const worker = await bundled('src/work-worker.ts');
const script = await bundled('src/main.ts', { WORKER: JSON.stringify(worker), TEXTS: JSON.stringify(tables()) });
const style = read('src/style.css');
// Such a text would end its element early, and the hash would no longer be that of the code that
// the browser runs.
if (/<\/script|<!--/i.test(script) || /<\/style/i.test(style)) throw new Error('the bundle closes its own element');

const policy = [
  "default-src 'none'",
  `script-src ${source(script)}`,
  `style-src ${source(style)}`,
  'worker-src blob:',
  'connect-src ws: wss:',
  'img-src data:',
  'manifest-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "require-trusted-types-for 'script'",
].join('; ');

const icon = `data:image/svg+xml,${encodeURIComponent(read('src/icon.svg').trim())}`;
const values = { POLICY: policy, STYLE: style, SCRIPT: script, ICON: icon };
const filled = read('src/index.html').replace(/%%(\w+)%%/g, (_, name) => {
  if (!(name in values)) throw new Error(`nothing is called ${name}`);
  return values[name];
});
// The page computes its own SHA-256 from the document that the browser's parser made. So the file
// must be exactly what a parser writes. The script comes last, so that all of the page is parsed
// when it runs.
const page = serialize(parse(filled.replace(/<\/script>\s*<\/body>\s*<\/html>\s*$/, '</script></body></html>')));
if (serialize(parse(page)) !== page || !page.endsWith('</script></body></html>')) {
  throw new Error('the page is not what a browser would write');
}
const hash = sha256(page).digest('hex');
// A file that stays the same keeps its date, so that cargo does not build the bot again.
function write(name, text) {
  const path = join(here, 'dist', name);
  if (!existsSync(path) || !readFileSync(path).equals(Buffer.from(text))) writeFileSync(path, text);
}
mkdirSync(join(here, 'dist'), { recursive: true });
write('index.html', page);
write('page.sha256', `${hash}  index.html\n`);
// As the bot serves it. Other versions of Node.js may compress to other bytes, so `check.sh` compares
// the content.
const brotli = brotliCompressSync(page, { params: { [constants.BROTLI_PARAM_LGWIN]: 22 } });
const gzip = gzipSync(page, { level: 9 });
write('index.html.br', brotli);
write('index.html.gz', gzip);
console.log(`dist/index.html ${Buffer.byteLength(page)} bytes (brotli ${brotli.length}, gzip ${gzip.length}), sha256 ${hash}`);
