import test from 'ava';
import { chromium, type Browser } from 'playwright-core';

// Plain JavaScript, which runs before anything is compiled: it lies beside the compiled tests, not among them.
const program = new URL('../../../scripts/bootstrap/browser-program.mjs', import.meta.url);
const { findBrowser } = (await import(program.href)) as { findBrowser: () => string | null };
const executablePath = findBrowser();

/** Not every machine has a browser. */
export const withBrowser = executablePath === null ? test.skip : test;

export async function launchBrowser(): Promise<Browser> {
  // All names below .test are this machine.
  const args = ['--host-resolver-rules=MAP *.test 127.0.0.1'];
  // Root, as in a container, cannot use the sandbox; only pages of the tests are opened.
  return await chromium.launch({ executablePath: executablePath!, chromiumSandbox: false, args });
}
