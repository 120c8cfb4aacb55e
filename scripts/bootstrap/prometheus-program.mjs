import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { canInstallPackages, extractPackage } from './debian-package.mjs';
import { findOnPath, SetupError, root, say } from './processes.mjs';

const names = ['prometheus', 'promtool'];
const cache = join(root, '.cache');
const folder = join(cache, 'prometheus');

const toPrograms = ([prometheus, promtool]) =>
  prometheus === null || promtool === null ? null : { prometheus, promtool };

const findExtracted = (name) => {
  const path = join(folder, 'usr', 'bin', name);
  return existsSync(path) ? path : null;
};

/** Returns the paths of Prometheus and promtool, or null. Tests that need them use this, too. */
export const findPrometheus = () =>
  toPrograms(names.map((name) => findOnPath([name]))) ?? toPrograms(names.map(findExtracted));

/**
 * Gets Prometheus from its Debian package if this user may. The package is not installed, because it would start a server
 * on all addresses. Without Prometheus, the tests that need it are skipped.
 */
export async function fetchPrometheus() {
  const advice =
    'install Prometheus, so that prometheus and promtool are on the PATH, to run the tests of alerts and dashboards on it.';
  if (!canInstallPackages()) {
    say(`No Prometheus found: ${advice}`);
    return;
  }
  await mkdir(cache, { recursive: true });
  const temporary = await mkdtemp(join(cache, 'fetch-prometheus-'));
  try {
    await extractPackage('Prometheus', 'prometheus', temporary, advice);
    await rm(folder, { recursive: true, force: true });
    await rename(temporary, folder);
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    say(error.message);
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}
