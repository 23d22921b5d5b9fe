// Short ways to reach the page's elements. A missing element is a mistake in index.html and throws.

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

export function say(id: string, text: string): void {
  // A screen reader repeats a live region at every change, so equal text is left alone.
  if (element(id).textContent !== text) element(id).textContent = text;
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

/** Runs `act` and says what went wrong beside the fields it concerns. */
export function attempt(errorId: string, fields: readonly string[], act: () => void): void {
  let problem = '';
  try {
    act();
  } catch (error) {
    problem = error instanceof Error ? error.message : 'Something went wrong. Please reload the page.';
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
    say(saidId, 'Copied.');
    return true;
  } catch {
    from?.select();
    const instead = from ? 'the text is selected, copy it yourself' : 'show the text and copy it yourself';
    say(saidId, `Your browser does not let the page copy: ${instead}.`);
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
  act: () => Promise<string>,
): Promise<void> {
  say(ids.error, '');
  say(ids.said, 'Working: this is slow on purpose.');
  button(ids.button).disabled = true;
  await painted();
  try {
    say(ids.said, await act());
    input(ids.field).value = '';
  } catch (error) {
    say(ids.said, '');
    const memory = 'It did not work, perhaps for want of memory. Close other tabs and try again.';
    say(ids.error, error instanceof Error && !(error instanceof RangeError) ? error.message : memory);
    input(ids.field).focus();
  } finally {
    button(ids.button).disabled = false;
  }
}

/** The file chosen in a field, if it is no larger than `most` bytes. */
export async function chosenFile(id: string, most: number): Promise<Uint8Array> {
  const file = input(id).files?.[0];
  if (file === undefined) throw new Error('No file is chosen yet.');
  if (file.size > most) throw new Error('This file is too large to be one of this page.');
  return new Uint8Array(await file.arrayBuffer());
}

/** Lets the browser draw before work that blocks it. */
function painted(): Promise<void> {
  return new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
}
