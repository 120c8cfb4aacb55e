import { randomUUID } from 'node:crypto';
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { isRunning, type ProcessIdentity } from './process-identity.ts';

const takeoverWaitMs = 5;

/**
 * Creates the lock file at `path`, which identifies its holder in JSON. Replaces the file of a process that is gone,
 * and damaged files. Lock files are created atomically, so a damaged one does not belong to a live holder.
 * @param self the content of the file, which identifies this process
 * @returns the contents of the replaced files
 * @throws the error that `createError` returns if the holder is running
 */
export function takeLockFile<T extends ProcessIdentity>(
  path: string,
  self: T,
  createError: (holder: T) => Error,
): T[] {
  const claim = `${path}.${randomUUID()}`;
  const replaced: T[] = [];
  try {
    writeFileSync(claim, JSON.stringify(self), { flag: 'wx', mode: 0o600, flush: true });
    while (!tryLink(claim, path)) {
      const holder = readLockFile(path) as T | null;
      if (holder !== null && isRunning(holder)) throw createError(holder);
      if (removeStale(path, claim) && holder !== null) replaced.push(holder);
    }
  } finally {
    rmSync(claim, { force: true });
  }
  return replaced;
}

/** Returns null if there is no file or it is damaged. */
export function readLockFile(path: string): ProcessIdentity | null {
  try {
    const holder = JSON.parse(readFileSync(path, 'utf8')) as Partial<ProcessIdentity> | null;
    return typeof holder?.pid === 'number' && holder.startedAt !== undefined
      ? (holder as ProcessIdentity)
      : null;
  } catch (error) {
    if (error instanceof SyntaxError || hasCode(error, 'ENOENT')) return null;
    throw error;
  }
}

/** Removes the file if this process holds it. */
export function releaseLockFile(path: string): void {
  if (readLockFile(path)?.pid === process.pid) rmSync(path, { force: true });
}

/**
 * Creates the lock file as a link, with its content, in one step. A file that is created and then written is briefly
 * empty.
 */
function tryLink(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return false;
    throw error;
  }
}

/**
 * Removes a stale file, or waits a moment if another process is removing it. Only one process at a time may remove it,
 * after checking it again. Otherwise a process that checked the file earlier would remove the file of a new holder.
 * @returns whether this process removed it
 */
function removeStale(path: string, claim: string): boolean {
  const takeover = `${path}.takeover`;
  if (!tryLink(claim, takeover)) {
    endStaleTakeover(takeover);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, takeoverWaitMs);
    return false;
  }
  try {
    const holder = readLockFile(path);
    if (holder !== null && isRunning(holder)) return false;
    rmSync(path, { force: true });
    return true;
  } finally {
    rmSync(takeover, { force: true });
  }
}

/**
 * Removes the takeover file of a process that was killed. If the removed file belongs to a running process, which has
 * created it since the check, puts it back.
 */
function endStaleTakeover(takeover: string): void {
  const owner = readLockFile(takeover);
  if (owner !== null && isRunning(owner)) return;
  const movedPath = `${takeover}.${randomUUID()}`;
  try {
    renameSync(takeover, movedPath);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return;
    throw error;
  }
  const movedOwner = readLockFile(movedPath);
  if (movedOwner !== null && isRunning(movedOwner)) tryLink(movedPath, takeover);
  rmSync(movedPath, { force: true });
}

const hasCode = (error: unknown, code: string): boolean => (error as NodeJS.ErrnoException).code === code;
