// Finds a Chromium: the one named by NPUBBOT_CHROMIUM, one on the PATH, or the one Playwright
// installed.

import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { chromium, type Browser } from 'playwright';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];

export function chromiumPath(): string | undefined {
  const named = process.env.NPUBBOT_CHROMIUM;
  if (named) return named;
  const folders = (process.env.PATH ?? '').split(delimiter);
  const found = folders.flatMap((folder) => NAMES.map((name) => join(folder, name))).find(existsSync);
  const own = chromium.executablePath();
  return found ?? (existsSync(own) ? own : undefined);
}

export function launch(executablePath: string): Promise<Browser> {
  // A container's root cannot use the sandbox; the page under test is ours.
  return chromium.launch({ executablePath, chromiumSandbox: process.getuid?.() !== 0 });
}
