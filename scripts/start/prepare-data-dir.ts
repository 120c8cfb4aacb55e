import { accessSync, constants, mkdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ConfigError } from '../../shared/platform/runtime/config-error.ts';
import { explainFileError } from '../../shared/platform/runtime/explain-file-error.ts';

const { R_OK, W_OK, X_OK, S_IWOTH: anyoneMayWrite } = constants;

/** The folders of the parts. */
const folders = ['logs', 'mongo', 'mongod', 'outbox', 'redis', 's3'];
const files = ['secrets.json', 'supervisor.json', 'endpoints.json', 'mongod.key'];

/**
 * Creates the folder if it is missing, and checks that the files and folders of the parts are accessible. Otherwise
 * each part would fail later, with a less helpful message. Ignores other files, such as the `lost+found` of a disk.
 * @param dataDir absolute path
 * @throws ConfigError that names the file or folder
 */
export function prepareDataDir(dataDir: string): void {
  makeFolder(dataDir);
  useDataFile(dataDir, dataDir, () => accessSync(dataDir, R_OK | W_OK | X_OK));
  for (const name of [...folders, ...files]) {
    const path = join(dataDir, name);
    if (!useDataFile(dataDir, path, () => exists(path))) continue;
    const isFolder = statSync(path).isDirectory();
    if (!isFolder && folders.includes(name)) throw unusable(dataDir, path, 'it is not a folder');
    useDataFile(dataDir, path, () => accessSync(path, isFolder ? R_OK | W_OK | X_OK : R_OK | W_OK));
  }
}

/**
 * Returns a warning if other users of the machine can replace our secrets with their own. It is not an error, because
 * in containers and in shared folders of virtual machines, owners and modes are often reported wrongly.
 * @param dataDir absolute path of an existing folder
 */
export function describeExposure(dataDir: string): string | null {
  const user = process.geteuid?.();
  if (user === undefined) return null;
  const reasons = [dataDir, join(dataDir, 'secrets.json')].flatMap((path) => {
    const { uid, mode } = statSync(path, { throwIfNoEntry: false }) ?? { uid: user, mode: 0 };
    // Root can change everything in any case.
    if (uid !== user && uid !== 0) return [`${path} belongs to user ${uid}`];
    return (mode & anyoneMayWrite) === 0 ? [] : [`every user may write to ${path}`];
  });
  if (reasons.length === 0) return null;
  return (
    `Other users of this machine can replace the secrets of this gateway: ${reasons.join(', and ')}. ` +
    `Make user ${user} their owner and the only user who may write to them, or set DATA_DIR to a separate folder.`
  );
}

/**
 * Runs a function that uses a file of DATA_DIR.
 * @throws ConfigError if the function fails
 */
export function useDataFile<T>(dataDir: string, path: string, use: () => T): T {
  try {
    return use();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).syscall === undefined) throw error;
    throw unusable(dataDir, path, explainFileError(error, path), error);
  }
}

function unusable(dataDir: string, path: string, reason: string, cause?: unknown): ConfigError {
  const subject = path === dataDir ? `DATA_DIR is ${dataDir}, which` : `${path} (in DATA_DIR)`;
  return new ConfigError(
    `${subject} cannot be used: ${reason}. ` +
      'Fix that, or set DATA_DIR to a folder that this user may write to.',
    { cause },
  );
}

/**
 * Creates one folder at a time, because Node's `recursive` option never returns on a file system that does not accept
 * new folders, such as /proc.
 */
function makeFolder(dataDir: string): void {
  const missing: string[] = [];
  let at = dataDir;
  while (!useDataFile(dataDir, at, () => exists(at))) {
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
  if (code === 'ENOENT') return `${dirname(path)} does not accept new folders`;
  if (code === 'EEXIST') return `${path} is a link to a missing file or folder`;
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
