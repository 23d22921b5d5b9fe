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

/** The texts that files of the source name, by a pattern whose group is the id. */
function idsIn(ending, pattern) {
  const files = readdirSync(SOURCE).filter((file) => file.endsWith(ending));
  const texts = files.map((file) => readFileSync(new URL(file, SOURCE), 'utf8'));
  return texts.flatMap((text) => [...text.matchAll(pattern)].map(([, id]) => id));
}

/** What is wrong with the tables: between them, and between them and the source. */
function problemsOf(tables) {
  const [first, ...others] = tables.map(({ code, entries }) => ({ code, shapes: new Map(entries.map((entry) => [name(entry), shapeOf(entry)])) }));
  const ofPage = tables[0].page.map(name);
  const problems = others.flatMap(({ code, shapes }) => [
    ...[...first.shapes.keys()].filter((id) => !shapes.has(id)).map((id) => `${code}: ${id} is missing`),
    ...[...shapes.keys()].filter((id) => !first.shapes.has(id)).map((id) => `${code}: ${id} is in no other table`),
    // The bot's tables have a test of their own, and may leave a value out.
    ...ofPage.filter((id) => shapes.has(id) && shapes.get(id) !== first.shapes.get(id))
      .map((id) => `${code}: ${id} has the values “${shapes.get(id)}”, not “${first.shapes.get(id)}”`),
  ]);
  const inDocument = idsIn('.html', /data-(?:text|label)="([^"]+)"/g);
  // Calls with one id, or with `condition ? 'one' : 'other'`.
  const heads = idsIn('.ts', /\b(?:tell|Problem|PatternError)\(([^(),{]*)/g);
  const called = heads.flatMap((head) => [...`(${head}`.matchAll(/[(?:]\s*'([a-z][a-z0-9-]*)'/g)].map(([, id]) => id));
  const quoted = new Set([...inDocument, ...idsIn('.ts', /'([a-z][a-z0-9-]*)'/g)]);
  return [
    ...problems,
    ...[...inDocument, ...called].filter((id) => !first.shapes.has(id)).map((id) => `${id} is said by the page, and in no table`),
    ...ofPage.filter((id) => !quoted.has(id)).map((id) => `${id} is said nowhere`),
  ];
}

/** The table of each language: its code, and its texts in Fluent. */
export function tables() {
  const tables = LANGUAGES.map((code) => {
    const page = entriesOf(`page/${code}.ftl`);
    const bot = entriesOf(`${code}.ftl`).filter((entry) => SHARED.test(name(entry)));
    return { code, page, entries: [...bot, ...page] };
  });
  const problems = problemsOf(tables);
  if (problems.length > 0) throw new Error(`the page's texts:\n${problems.join('\n')}`);
  const serializer = new FluentSerializer();
  return Object.fromEntries(tables.map(({ code, entries }) =>
    [code, entries.map((entry) => serializer.serializeEntry(entry)).join('').replace(/^ +/gm, ' ')]));
}
