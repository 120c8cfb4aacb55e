import { accessSync, constants, mkdirSync, readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ConfigError } from '../../shared/runtime/config.ts';
import { explainFileError } from '../../shared/runtime/explain-file-error.ts';

const { R_OK, W_OK, X_OK } = constants;

/** Of the parts. */
const folders = ['logs', 'mongo', 'mongod', 'redis', 's3'];

/**
 * Makes the folder where it is missing, and makes sure that its parts can be used: each of them would fail of it later,
 * with words of its own.
 * @param dataDir absolute
 * @throws ConfigError naming the file or folder
 */
export function prepareDataDir(dataDir: string): void {
  makeFolder(dataDir);
  tryOn(dataDir, dataDir, () => accessSync(dataDir, R_OK | W_OK | X_OK));
  for (const entry of readdirSync(dataDir, { withFileTypes: true })) {
    const path = join(dataDir, entry.name);
    const mode = entry.isDirectory() ? R_OK | W_OK | X_OK : R_OK | W_OK;
    // Another start's draft may be gone by now.
    if (!exists(path)) continue;
    if (folders.includes(entry.name) && !statSync(path).isDirectory())
      throw unusable(dataDir, path, 'it is not a folder');
    tryOn(dataDir, path, () => accessSync(path, mode));
  }
}

/** Runs what uses a file of DATA_DIR. @throws ConfigError where the file system refuses */
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

/** Folder by folder: Node's `recursive` never returns where a file system takes no folders, as /proc. */
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
  // Linux says "no such file" where a folder is there and takes none.
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
