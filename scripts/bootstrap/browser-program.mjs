import { canInstallPackages, installPackage } from './debian-package.mjs';
import { findOnPath, Refusal, say } from './processes.mjs';

const programs = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'];

/** Its path, or null. The tests that need one ask here as well. */
export const findBrowser = () => findOnPath(programs);

/** Installs Chromium where this user may; the tests that need a browser are skipped without one. */
export async function installBrowser() {
  const advice =
    'install Chromium or Chrome, so that it is on the PATH, to run the tests that need a browser.';
  if (!canInstallPackages()) {
    say(`There is no browser here: ${advice}`);
    return;
  }
  try {
    await installPackage('Chromium', 'chromium', advice);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    say(error.message);
  }
}
