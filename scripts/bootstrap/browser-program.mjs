import { canInstallPackages, installPackage } from './debian-package.mjs';
import { findOnPath, SetupError, say } from './processes.mjs';

const programs = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'];

/** Returns the path of a browser, or null. Tests that need one use this, too. */
export const findBrowser = () => findOnPath(programs);

/** Installs Chromium if this user may. Without a browser, the tests that need one are skipped. */
export async function installBrowser() {
  const advice =
    'install Chromium or Chrome, so that it is on the PATH, to run the tests that need a browser.';
  if (!canInstallPackages()) {
    say(`No browser found: ${advice}`);
    return;
  }
  try {
    await installPackage('Chromium', 'chromium', advice);
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    say(error.message);
  }
}
