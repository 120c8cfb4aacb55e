import { existsSync, readdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { findOnPath, runStep } from './processes.mjs';

/** Whether this user may install Debian or Ubuntu packages on this machine. */
export function canInstallPackages() {
  const isRoot = process.getuid?.() === 0;
  return isRoot && existsSync('/etc/debian_version') && findOnPath(['apt-get']) !== null;
}

/** @throws SetupError with the advice, if apt-get fails */
export async function installPackage(title, name, advice) {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const failure = `apt-get could not install ${title}; see its output above. Please ${advice}`;
  const install = ['install', '-y', '--no-install-recommends', name];
  await runStep('Reading the package lists', failure, 'apt-get', ['update', '-q'], { env });
  await runStep(`Installing ${title}`, failure, 'apt-get', install, { env });
}

/**
 * Extracts the files of a package into a folder, without its dependencies and without installing it.
 * @throws SetupError with the advice, if apt-get fails
 */
export async function extractPackage(title, name, folder, advice) {
  const failure = `apt-get could not download ${title}; see its output above. Please ${advice}`;
  await runStep('Reading the package lists', failure, 'apt-get', ['update', '-q']);
  await runStep(`Downloading ${title}`, failure, 'apt-get', ['download', '-q', name], { cwd: folder });
  for (const file of readdirSync(folder).filter((file) => file.endsWith('.deb'))) {
    const path = join(folder, file);
    await runStep(`Extracting ${title}`, failure, 'dpkg-deb', ['--extract', path, folder]);
    await rm(path);
  }
}
