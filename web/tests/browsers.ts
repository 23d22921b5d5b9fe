// Finds a Chromium: the one named by NPUBBOT_CHROMIUM, one on the PATH, or the one Playwright
// installed. And a Firefox: the one named by NPUBBOT_FIREFOX, or one on the PATH.

import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { chromium, firefox, type Browser } from 'playwright';

const CHROMIUMS = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];
const FIREFOXES = ['firefox-esr', 'firefox'];

function onPath(names: readonly string[]): string | undefined {
  const folders = (process.env.PATH ?? '').split(delimiter);
  return folders.flatMap((folder) => names.map((name) => join(folder, name))).find(existsSync);
}

export function chromiumPath(): string | undefined {
  const own = chromium.executablePath();
  return process.env.NPUBBOT_CHROMIUM || onPath(CHROMIUMS) || (existsSync(own) ? own : undefined);
}

export function firefoxPath(): string | undefined {
  return process.env.NPUBBOT_FIREFOX || onPath(FIREFOXES);
}

/** Launches an ordinary Firefox, which Playwright drives by WebDriver BiDi. */
export function launchFirefox(executablePath: string): Promise<Browser> {
  return firefox.launch({ executablePath, channel: 'moz-firefox' });
}

export function launch(executablePath: string): Promise<Browser> {
  // A container's root cannot use the sandbox; the page under test is ours.
  return chromium.launch({ executablePath, chromiumSandbox: process.getuid?.() !== 0 });
}
