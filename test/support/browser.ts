import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import test from 'ava';
import { chromium, type Browser } from 'playwright-core';

/** As scripts/bootstrap/browser-program.mjs looks for it. */
const programs = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'];

function findBrowser(): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  const paths = programs.flatMap((program) => folders.map((folder) => join(folder, program)));
  return paths.find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

const executablePath = findBrowser();

/** Not every machine has a browser. */
export const withBrowser = executablePath === undefined ? test.skip : test;

export async function launchBrowser(): Promise<Browser> {
  // Root, as in a container, cannot use the sandbox; only pages of the tests are opened.
  return await chromium.launch({ executablePath: executablePath!, chromiumSandbox: false });
}
