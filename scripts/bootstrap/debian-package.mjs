import { existsSync } from 'node:fs';
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
