import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readText, root, runStep } from './processes.mjs';

const lockPath = join(root, 'package-lock.json');
const stampPath = join(root, 'node_modules', '.bootstrap-stamp');
const platform = `${process.platform}-${process.arch}`;

/** Identifies the packages that should be installed, by the lock file's content and the platform of their binaries. */
export const packagesStamp = () =>
  `${createHash('sha256').update(readText(lockPath)).digest('hex')} ${platform}`;

/** Whether node_modules matches package-lock.json, even if the packages were installed by hand. */
export function isInstalled() {
  const stamp = readText(stampPath);
  if (stamp === packagesStamp()) return true;
  const hidden = readText(join(root, 'node_modules', '.package-lock.json'));
  const isForeign = stamp !== '' && !stamp.endsWith(` ${platform}`);
  if (hidden === '' || isForeign) return false;
  if (!matchesLock(JSON.parse(hidden).packages, JSON.parse(readText(lockPath)).packages)) return false;
  writeFileSync(stampPath, packagesStamp());
  return true;
}

function matchesLock(present, expected) {
  const isPresent = ([path, entry]) => {
    // The empty path is the project itself.
    if (path === '') return true;
    // A missing optional package is for another platform.
    if (!present[path]) return Boolean(entry.optional || entry.devOptional);
    return present[path].version === entry.version && present[path].integrity === entry.integrity;
  };
  return Object.keys(present).every((path) => expected[path]) && Object.entries(expected).every(isPresent);
}

export async function installPackages() {
  // Under `npm start`, use the npm that runs us. Other package managers do not support `ci`.
  const currentNpm = process.env.npm_execpath ?? '';
  const [file, ...first] = currentNpm.endsWith('npm-cli.js') ? [process.execPath, currentNpm] : ['npm'];
  // The build needs all packages, even if NODE_ENV is production or npm is configured to omit some.
  const args = [
    ...first,
    'ci',
    '--include=dev',
    '--include=optional',
    '--no-audit',
    '--no-fund',
    '--loglevel=error',
  ];
  await runStep('Installing packages', '"npm ci" failed; see its output above.', file, args);
  writeFileSync(stampPath, packagesStamp());
}
