import { randomUUID } from 'node:crypto';
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { isRunning, type ProcessIdentity } from './process-identity.ts';

const takeoverWaitMs = 5;

/**
 * Creates the file at `path`, which says in JSON who holds what it locks. Replaces the file of a process that is gone,
 * and a damaged one: files appear whole, so that a damaged one protects nothing.
 * @param own what the file says, of this process
 * @returns what the replaced files said
 * @throws what `refuse` makes of a holder that runs
 */
export function takeLockFile<T extends ProcessIdentity>(
  path: string,
  own: T,
  refuse: (holder: T) => Error,
): T[] {
  const claim = `${path}.${randomUUID()}`;
  const replaced: T[] = [];
  try {
    writeFileSync(claim, JSON.stringify(own), { flag: 'wx', mode: 0o600, flush: true });
    while (!tryLink(claim, path)) {
      const holder = readLockFile(path) as T | null;
      if (holder !== null && isRunning(holder)) throw refuse(holder);
      if (removeStale(path, claim) && holder !== null) replaced.push(holder);
    }
  } finally {
    rmSync(claim, { force: true });
  }
  return replaced;
}

/** Null if there is no file, or a damaged one. */
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

/** Removes the file if it is this process's. */
export function releaseLockFile(path: string): void {
  if (readLockFile(path)?.pid === process.pid) rmSync(path, { force: true });
}

/** A link appears with its content in one step. Creating and writing a file would briefly show an empty one. */
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
 * Removes a stale file, or waits a moment for another process that does. One process at a time may, and it looks once
 * more: otherwise a process that comes late would remove the file of a new holder.
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

/** Of a process that was killed within it. A process that comes late moves a new one, and puts it back. */
function endStaleTakeover(takeover: string): void {
  const taker = readLockFile(takeover);
  if (taker !== null && isRunning(taker)) return;
  const aside = `${takeover}.${randomUUID()}`;
  try {
    renameSync(takeover, aside);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return;
    throw error;
  }
  const moved = readLockFile(aside);
  if (moved !== null && isRunning(moved)) tryLink(aside, takeover);
  rmSync(aside, { force: true });
}

const hasCode = (error: unknown, code: string): boolean => (error as NodeJS.ErrnoException).code === code;
