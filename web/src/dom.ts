// Short ways to reach the page's elements, and to fill them with texts. A missing element is a mistake
// in index.html and throws.

import { attributesOf, language, Problem, tell } from './texts';

export function the<T extends HTMLElement>(id: string, kind: new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`the page has no ${id}`);
  return found;
}
export const element = (id: string) => the(id, HTMLElement);
export const input = (id: string) => the(id, HTMLInputElement);
export const area = (id: string) => the(id, HTMLTextAreaElement);
export const button = (id: string) => the(id, HTMLButtonElement);

export function show(id: string, shown: boolean): void {
  element(id).hidden = !shown;
}

/** A text, or how to tell it: it is told again when the language changes. */
export type Text = string | (() => string);

const said = new Map<string, () => string>();

export function say(id: string, text: Text): void {
  const now = typeof text === 'string' ? () => text : text;
  said.set(id, now);
  write(element(id), now());
}

function write(into: HTMLElement, text: string): void {
  // A screen reader repeats a live region at every change, so equal text is left alone.
  if (into.textContent !== text) into.textContent = text;
}

/** Fills the document in the language of now: its own texts, and all that was said. */
export function fillTexts(): void {
  document.documentElement.lang = language();
  document.documentElement.dir = tell('text-direction');
  for (const one of document.querySelectorAll<HTMLElement>('[data-text]')) {
    const id = one.dataset.text ?? '';
    write(one, tell(id));
    for (const [name, value] of attributesOf(id)) one.setAttribute(name, value);
  }
  for (const one of document.querySelectorAll<HTMLElement>('[data-label]')) one.ariaLabel = tell(one.dataset.label ?? '');
  for (const [id, text] of said) write(element(id), text());
}

/** Moves the reader's place to a heading (which needs `tabindex="-1"`) and scrolls it into view. */
export function goTo(id: string): void {
  const heading = element(id);
  heading.focus({ preventScroll: true });
  const calm = matchMedia('(prefers-reduced-motion: reduce)').matches;
  heading.scrollIntoView({ block: 'start', behavior: calm ? 'auto' : 'smooth' });
}

export function onClick(id: string, act: () => void): void {
  button(id).addEventListener('click', act);
}

export function onSubmit(id: string, act: () => void): void {
  the(id, HTMLFormElement).addEventListener('submit', (event) => {
    event.preventDefault();
    act();
  });
}

/** The text of an error for the visitor, told again when the language changes. */
export function textOf(error: unknown): Text {
  if (error instanceof Problem) return () => error.tell();
  console.error(error);
  return () => tell('went-wrong');
}

/** Runs `act` and says what went wrong beside the fields it concerns. */
export function attempt(errorId: string, fields: readonly string[], act: () => void): void {
  let problem: Text = '';
  try {
    act();
  } catch (error) {
    problem = textOf(error);
  }
  say(errorId, problem);
  for (const id of fields) element(id).setAttribute('aria-invalid', String(problem !== ''));
  const first = fields[0];
  if (problem !== '' && first !== undefined) element(first).focus();
}

/**
 * Copies the text. If the browser forbids that, selects the text instead. Returns whether it is
 * copied.
 */
export async function copy(text: string, saidId: string, from?: HTMLTextAreaElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    say(saidId, () => tell('copied'));
    return true;
  } catch {
    from?.select();
    say(saidId, () => tell(from ? 'copy-selected' : 'copy-shown'));
    return false;
  }
}

export function copies(name: string, areaId: string, saidId = `${name}-said`): void {
  onClick(`copy-${name}`, () => void copy(area(areaId).value, saidId, area(areaId)));
}

/** A pattern as a part of a file's name: its letters and digits. */
export function fileName(pattern = ''): string {
  return pattern.replace(/[^a-z0-9]/g, '') || 'key';
}

/** Offers a file to the browser's downloads. */
export function download(name: string, content: BlobPart, type: string): void {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // The browser needs the address until it has taken the file.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/**
 * Runs work that takes a while. Meanwhile the button is disabled and `said` says so. An error is
 * said beside the field.
 */
export async function attemptSlowly(
  ids: { button: string; said: string; error: string; field: string },
  act: () => Promise<Text>,
): Promise<void> {
  say(ids.error, '');
  say(ids.said, () => tell('slow'));
  button(ids.button).disabled = true;
  await painted();
  try {
    say(ids.said, await act());
    input(ids.field).value = '';
  } catch (error) {
    say(ids.said, '');
    say(ids.error, error instanceof Problem ? textOf(error) : () => tell('no-memory'));
    input(ids.field).focus();
  } finally {
    button(ids.button).disabled = false;
  }
}

/** The file chosen in a field, if it is no larger than `most` bytes. */
export async function chosenFile(id: string, most: number): Promise<Uint8Array> {
  const file = input(id).files?.[0];
  if (file === undefined) throw new Problem('file-none');
  if (file.size > most) throw new Problem('file-large');
  return new Uint8Array(await file.arrayBuffer());
}

/** Lets the browser draw before work that blocks it. */
function painted(): Promise<void> {
  return new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
}
