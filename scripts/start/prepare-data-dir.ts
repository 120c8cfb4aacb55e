import { accessSync, constants, mkdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ConfigError } from '../../shared/runtime/config-error.ts';
import { explainFileError } from '../../shared/runtime/explain-file-error.ts';

const { R_OK, W_OK, X_OK, S_IWOTH: anyoneMayWrite } = constants;

/** Folders of the parts. */
const folders = ['logs', 'mongo', 'mongod', 'outbox', 'redis', 's3'];
const files = ['secrets.json', 'supervisor.json', 'endpoints.json', 'mongod.key'];

/**
 * Creates the folder if it is missing, and checks that what the parts use in it is accessible. Otherwise each of them
 * would fail later, with less helpful messages. Ignores anything else, such as the `lost+found` of a disk.
 * @param dataDir absolute path
 * @throws ConfigError that names the file or folder
 */
export function prepareDataDir(dataDir: string): void {
  makeFolder(dataDir);
  tryOn(dataDir, dataDir, () => accessSync(dataDir, R_OK | W_OK | X_OK));
  for (const name of [...folders, ...files]) {
    const path = join(dataDir, name);
    if (!tryOn(dataDir, path, () => exists(path))) continue;
    const isFolder = statSync(path).isDirectory();
    if (!isFolder && folders.includes(name)) throw unusable(dataDir, path, 'it is not a folder');
    tryOn(dataDir, path, () => accessSync(path, isFolder ? R_OK | W_OK | X_OK : R_OK | W_OK));
  }
}

/**
 * Returns a warning if other users of the machine can replace our secrets with their own. It is a warning and not an
 * error because in containers and on shared folders of virtual machines, owners and modes are often not what they
 * seem.
 * @param dataDir absolute path of an existing folder
 */
export function describeExposure(dataDir: string): string | null {
  const user = process.geteuid?.();
  if (user === undefined) return null;
  const reasons = [dataDir, join(dataDir, 'secrets.json')].flatMap((path) => {
    const { uid, mode } = statSync(path, { throwIfNoEntry: false }) ?? { uid: user, mode: 0 };
    // Root can change everything anyway.
    if (uid !== user && uid !== 0) return [`${path} belongs to user ${uid}`];
    return (mode & anyoneMayWrite) === 0 ? [] : [`everybody may write to ${path}`];
  });
  if (reasons.length === 0) return null;
  return (
    `Other users of this machine can replace the secrets of this gateway: ${reasons.join(', and ')}. ` +
    `Let user ${user} alone own them and write to them, or set DATA_DIR to a folder of its own.`
  );
}

/**
 * Runs a function that uses a file of DATA_DIR.
 * @throws ConfigError if the file system refuses
 */
export function tryOn<T>(dataDir: string, path: string, use: () => T): T {
  try {
    return use();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).syscall === undefined) throw error;
    throw unusable(dataDir, path, explainFileError(error, path), error);
  }
}

function unusable(dataDir: string, path: string, reason: string, cause?: unknown): ConfigError {
  const what = path === dataDir ? `DATA_DIR is ${dataDir}, which` : `${path} (in DATA_DIR)`;
  return new ConfigError(
    `${what} cannot be used: ${reason}. ` +
      'Mend that, or set DATA_DIR to a folder that this user may write to.',
    { cause },
  );
}

/**
 * Creates one folder at a time: Node's `recursive` never returns on a file system that takes no folders, such as
 * /proc.
 */
function makeFolder(dataDir: string): void {
  const missing: string[] = [];
  let at = dataDir;
  while (!tryOn(dataDir, at, () => exists(at))) {
    missing.unshift(at);
    at = dirname(at);
  }
  if (!statSync(at).isDirectory()) {
    throw unusable(dataDir, dataDir, at === dataDir ? 'it is not a folder' : `${at} is not a folder`);
  }
  for (const path of missing) {
    try {
      mkdirSync(path, { mode: 0o700 });
    } catch (error) {
      throw unusable(dataDir, dataDir, explainMkdir(error, path), error);
    }
  }
}

function explainMkdir(error: unknown, path: string): string {
  const { code } = error as NodeJS.ErrnoException;
  // Linux reports "no such file" if the parent exists but does not accept folders.
  if (code === 'ENOENT') return `${dirname(path)} takes no folders`;
  if (code === 'EEXIST') return `${path} is a link to something that is not there`;
  return explainFileError(error, path);
}

function exists(path: string): boolean {
  try {
    statSync(path);
    return true;
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return false;
    throw error;
  }
}
