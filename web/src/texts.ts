// The page's texts in the visitor's language, from the same Fluent tables as the bot's answers.

import { FluentBundle, FluentResource } from '@fluent/bundle';

/** The table of each language, by its code; `build.mjs` fills them in. */
declare const TEXTS: Readonly<Record<string, string>>;

export type Values = Readonly<Record<string, string | number>>;

/** Codes of the languages. The first one is that of visitors who ask for none of them. */
export const LANGUAGES: readonly string[] = Object.keys(TEXTS);

/** The name under which the browser keeps the language that the visitor chose. */
const CHOICE = 'npubbot-language';

function preferredLanguage(): string {
  let chosen: string | null = null;
  try {
    chosen = globalThis.localStorage?.getItem(CHOICE) ?? null;
  } catch {
    // Nothing is kept for this page here.
  }
  const wanted = [chosen ?? '', ...(globalThis.document === undefined ? [] : navigator.languages)];
  const known = wanted.map((one) => one.slice(0, 2).toLowerCase()).find((code) => LANGUAGES.includes(code));
  return known ?? LANGUAGES[0] ?? 'en';
}

function bundleOf(code: string): FluentBundle {
  const bundle = new FluentBundle(code, { useIsolating: false });
  bundle.addResource(new FluentResource(TEXTS[code] ?? ''));
  return bundle;
}

let code = preferredLanguage();
let bundle = bundleOf(code);

export function language(): string {
  return code;
}

/** The name of a language in itself. */
export function languageName(of: string): string {
  return tellIn(bundleOf(of), 'language-name', {}, ' ');
}

/** Takes another language, and keeps the choice for the next visit. */
export function chooseLanguage(chosen: string): void {
  code = chosen;
  bundle = bundleOf(chosen);
  try {
    localStorage.setItem(CHOICE, chosen);
  } catch {
    // It is the language until the page is closed.
  }
}

/** The text of an id, with its values. Its lines are joined by `join`. */
export function tell(id: string, values: Values = {}, join = ' '): string {
  return tellIn(bundle, id, values, join);
}

function tellIn(from: FluentBundle, id: string, values: Values, join: string): string {
  const value = from.getMessage(id)?.value;
  if (!value) throw new Error(`the page has no text ${id}`);
  return from.formatPattern(value, values).replaceAll('\n', join);
}

/** The attributes of a text, such as its `aria-label`. */
export function attributesOf(id: string): [string, string][] {
  const attributes = bundle.getMessage(id)?.attributes ?? {};
  return Object.entries(attributes).map(([name, value]) => [name, bundle.formatPattern(value)]);
}

/** A fragment of a text as a sentence: `hex: comes first` becomes `Hex: comes first.` */
export function sentence(text: string): string {
  return tell('sentence', { text: text.charAt(0).toUpperCase() + text.slice(1) });
}

/** Something that the visitor can mend. Its text names the remedy. */
export class Problem extends Error {
  constructor(
    readonly id: string,
    readonly values: Values = {},
  ) {
    super(tell(id, values));
  }

  /** The text in the language of now. */
  tell(): string {
    return tell(this.id, this.values);
  }
}
