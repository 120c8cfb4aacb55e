import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Locks `dir` for this process, or throws an error that names the holder. Takes over the lock of a process that is
 * gone.
 * @returns a function that releases the lock
 */
export function lockDirectory(dir: string): () => void {
  const path = join(dir, 'lock');
  const own = join(dir, `lock-${process.pid}-${process.hrtime.bigint()}`);
  try {
    writeFileSync(own, JSON.stringify({ pid: process.pid, startedAt: readStartTime(process.pid) }));
    while (!tryLink(own, path)) {
      const holder = readHolder(path);
      if (holder !== undefined && isRunning(holder)) {
        throw new Error(`The embedded MongoDB in ${dir} is already in use by process ${holder.pid}.`);
      }
      // Of several processes that find the same stale lock, one renames it. If another one has locked in the
      // meantime, its lock is the one that was renamed, and it is put back.
      tryRename(path, `${own}-stale`);
      const moved = readHolder(`${own}-stale`);
      if (moved !== undefined && isRunning(moved)) renameSync(`${own}-stale`, path);
    }
  } finally {
    rmSync(own, { force: true });
    rmSync(`${own}-stale`, { force: true });
  }
  return () => rmSync(path, { force: true });
}

type Holder = { pid: number; startedAt: string };

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

function tryRename(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error;
  }
}

function readHolder(path: string): Holder | undefined {
  try {
    const { pid, startedAt } = JSON.parse(readFileSync(path, 'utf8')) as Partial<Holder>;
    return typeof pid === 'number' && typeof startedAt === 'string' ? { pid, startedAt } : undefined;
  } catch (error) {
    if (error instanceof SyntaxError || hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

function isRunning({ pid, startedAt }: Holder): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (hasCode(error, 'ESRCH')) return false;
    if (!hasCode(error, 'EPERM')) throw error;
  }
  return readStartTime(pid) === startedAt;
}

/** Distinguishes a process from a later one with the same id. Empty without /proc; then only the id counts. */
function readStartTime(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  } catch (error) {
    if (hasCode(error, 'ENOENT') || hasCode(error, 'ESRCH')) return '';
    throw error;
  }
}

const hasCode = (error: unknown, code: string) => (error as NodeJS.ErrnoException).code === code;
