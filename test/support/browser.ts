import test from 'ava';
import { chromium, type Browser } from 'playwright-core';

// Plain JavaScript that runs before anything is compiled, so it is outside the compiled output.
const program = new URL('../../../scripts/bootstrap/browser-program.mjs', import.meta.url);
const { findBrowser } = (await import(program.href)) as { findBrowser: () => string | null };
const executablePath = findBrowser();

export const findBrowserPath = findBrowser;

/** `test.serial`, because pages compete for the processors, or a skipped test on machines without a browser. */
export const withBrowser = executablePath === null ? test.serial.skip : test.serial;

export async function launchBrowser(): Promise<Browser> {
  // Resolves all names below .test to this machine.
  const args = ['--host-resolver-rules=MAP *.test 127.0.0.1'];
  // Root cannot use the sandbox (in a container, for example); only test pages are opened.
  return await chromium.launch({ executablePath: executablePath!, chromiumSandbox: false, args });
}
