// Keeping a request under a passphrase, and going on with a kept one.

import { attemptSlowly, chosenFile, download, element, fileName, input, onClick, onSubmit, say, show } from './dom';
import { decrypted, encrypted, forget, keep, kept, LARGEST_FILE, stored, type Kept } from './keep';
import { fromLines, toLines, type AskRequest } from './request';
import { language, tell } from './texts';

/** Whether the request under way is kept, and its entry if this browser keeps it. */
let state: { entry?: Kept; kept: boolean } = { kept: false };

export function isKept(): boolean {
  return state.kept;
}

/** Sets the state for another request. A reopened request is kept already. */
export function resetKeeping(reopened: boolean): void {
  state = reopened ? { ...(openedEntry && { entry: openedEntry }), kept: true } : { kept: false };
  input('keep-passphrase').value = '';
  say('keep-error', '');
  say('keep-said', reopened ? () => tell('is-kept') : '');
  show('keep-fields', !reopened);
  show('keep-why', !reopened);
}

/** Name of the entry in which this browser keeps the request under way. */
export function keptName(): string | undefined {
  return state.entry?.name;
}

export function keepRequest(request: AskRequest | undefined, where: 'browser' | 'file'): void {
  if (request === undefined) return;
  const clicked = where === 'browser' ? 'keep-here' : 'keep-file';
  const ids = { button: clicked, said: 'keep-said', error: 'keep-error', field: 'keep-passphrase' };
  void attemptSlowly(ids, async () => {
    const file = await encrypted(toLines(request), input('keep-passphrase').value);
    if (where === 'browser') {
      state = { entry: keep(request.asked, file), kept: true };
    } else {
      download(`npubbot-${fileName(request.patterns[0])}.age`, file, 'application/octet-stream');
      state = { kept: true };
    }
    show('keep-fields', false);
    show('keep-why', false);
    return () => tell(where === 'browser' ? 'kept-here' : 'kept-file');
  });
}

let openedEntry: Kept | undefined;

function chosen(): Kept | undefined {
  const picked = document.querySelector<HTMLInputElement>('#kept-list input:checked');
  return kept().find((one) => one.name === picked?.value);
}

function reopen(resume: (request: AskRequest) => void): void {
  const ids = { button: 'reopen-button', said: 'reopen-said', error: 'reopen-error', field: 'reopen-passphrase' };
  void attemptSlowly(ids, async () => {
    const entry = chosen();
    const file = entry ? stored(entry.name) : await chosenFile('kept-file', LARGEST_FILE);
    const request = fromLines(await decrypted(file, input('reopen-passphrase').value));
    openedEntry = entry;
    resume(request);
    return '';
  });
}

/** Shows what can be opened: the requests kept here, or a field for a file. */
function list(askForFile: boolean): void {
  const entries = kept();
  const format = new Intl.DateTimeFormat(language(), { dateStyle: 'medium', timeStyle: 'short' });
  const options = entries.map((entry, at) => {
    const label = document.createElement('label');
    label.className = 'check';
    const radio = document.createElement('input');
    radio.type = 'radio';
    radio.name = 'kept-request';
    radio.value = entry.name;
    radio.checked = at === 0 && !askForFile;
    label.append(radio, ` ${tell('kept-asked', { when: format.format(entry.asked) })}`);
    return label;
  });
  element('kept-list').replaceChildren(...options);
  show('kept-choice', entries.length > 0 && !askForFile);
  show('file-choice', askForFile);
  show('forget-kept', entries.length > 0 && !askForFile);
  show('kept-section', entries.length > 0 || askForFile);
}

function deleteChosen(): void {
  const entry = chosen();
  if (entry === undefined) return;
  if (!confirm(tell('delete-sure'))) return;
  forget(entry.name);
  list(false);
}

/** Shows the requests kept here, in the language of now. */
export function listKept(): void {
  if (!element('kept-section').hidden && element('file-choice').hidden) list(false);
}

export function startKeeping(resume: (request: AskRequest) => void): void {
  list(false);
  onSubmit('reopen', () => reopen(resume));
  onClick('forget-kept', deleteChosen);
  onClick('open-file', () => {
    list(true);
    input('kept-file').focus();
  });
}
