// The page's tables of texts: src/bot/texts/page/*.ftl, and those texts of the bot
// (src/bot/texts/*.ftl) that the page says too. A missing text or value fails the build.
import { readdirSync, readFileSync } from 'node:fs';
import { FluentParser, FluentSerializer, Transformer } from '@fluent/syntax';

const TABLES = new URL('../src/bot/texts/', import.meta.url);
const SOURCE = new URL('src/', import.meta.url);

/** Languages of the page. The first one is that of visitors who ask for none of them. */
const LANGUAGES = ['en', 'ja', 'es', 'pt', 'de', 'fr'];

/** Texts of the bot that the page says too, apart from those of errors and meanings. */
const SHARED =
  /^(-example|language-name|decimal|number-names|amount|odds|span.*|takes-.*|comma|means|meaning-.*|spelling|open-place|one-of|any-of|kinds|command-explain|language-set|command-help|pattern-(?!look-alike|too-intricate).*)$/;

const name = (entry) => (entry.type === 'Term' ? '-' : '') + entry.id.name;

function entriesOf(path) {
  const { body } = new FluentParser({ withSpans: false }).parse(readFileSync(new URL(path, TABLES), 'utf8'));
  const junk = body.find(({ type }) => type === 'Junk');
  if (junk) throw new Error(`${path}: ${junk.annotations[0]?.message}: ${junk.content.trim()}`);
  return body.filter(({ type }) => type === 'Message' || type === 'Term').map((entry) => Object.assign(entry, { comment: null }));
}

/** An entry's values and attributes, which are the same in every language. */
function shapeOf(entry) {
  const values = new Set();
  class Reader extends Transformer {
    visitVariableReference(node) {
      values.add(node.id.name);
      return node;
    }
  }
  new Reader().visit(entry);
  return [...values].sort().join(' ') + entry.attributes.map(({ id }) => ` .${id.name}`).sort().join('');
}

/** Every text that the page's source names: in `tell`, `Problem`, `say` and the document. */
function named() {
  const all = readdirSync(SOURCE).filter((file) => /\.(ts|html)$/.test(file));
  return new Set(all.flatMap((file) => {
    const text = readFileSync(new URL(file, SOURCE), 'utf8');
    const found = file.endsWith('.html') ? /data-(?:text|label)="([^"]+)"/g : /["'`]([a-z][a-z0-9]*(?:-[a-z0-9]+)*)["'`]/g;
    return [...text.matchAll(found)].map(([, id]) => id);
  }));
}

/** Every call with a literal id, which must exist. */
function called() {
  const all = readdirSync(SOURCE).filter((file) => file.endsWith('.ts'));
  return all.flatMap((file) => {
    const text = readFileSync(new URL(file, SOURCE), 'utf8');
    return [...text.matchAll(/\b(?:tell|Problem|PatternError)\(([^(),{]*)/g)].flatMap(([, head]) =>
      [...`(${head}`.matchAll(/[(?:]\s*'([a-z][a-z0-9-]*)'/g)].map(([, id]) => id));
  });
}

/** The table of each language: its code, and its texts in Fluent. */
export function tables() {
  const tables = LANGUAGES.map((code) => {
    const page = entriesOf(`page/${code}.ftl`);
    const bot = entriesOf(`${code}.ftl`).filter((entry) => SHARED.test(name(entry)));
    return { code, page, entries: [...bot, ...page] };
  });
  const shapes = tables.map(({ entries }) => new Map(entries.map((entry) => [name(entry), shapeOf(entry)])));
  const [first] = shapes;
  const problems = [];
  shapes.forEach((shape, at) => {
    const { code, entries } = tables[at];
    if (shape.size !== entries.length) problems.push(`${code}: a text is there twice`);
    for (const id of new Set([...first.keys(), ...shape.keys()])) {
      if (!shape.has(id)) problems.push(`${code}: ${id} is missing`);
      else if (!first.has(id)) problems.push(`${code}: ${id} is in no other table`);
      else if (tables[at].page.some((entry) => name(entry) === id) && shape.get(id) !== first.get(id)) {
        problems.push(`${code}: ${id} has the values “${shape.get(id)}”, not “${first.get(id)}”`);
      }
    }
  });
  const used = named();
  for (const id of called()) if (!first.has(id)) problems.push(`${id} is said by the page, and in no table`);
  for (const id of [...readFileSync(new URL('index.html', SOURCE), 'utf8').matchAll(/data-(?:text|label)="([^"]+)"/g)].map(([, id]) => id)) {
    if (!first.has(id)) problems.push(`${id} is in the document, and in no table`);
  }
  for (const entry of tables[0].page) if (!used.has(name(entry))) problems.push(`${name(entry)} is said nowhere`);
  if (problems.length > 0) throw new Error(`the page's texts:\n${[...new Set(problems)].join('\n')}`);
  const serializer = new FluentSerializer();
  return Object.fromEntries(tables.map(({ code, entries }) =>
    [code, entries.map((entry) => serializer.serializeEntry(entry)).join('').replace(/^ +/gm, ' ')]));
}
