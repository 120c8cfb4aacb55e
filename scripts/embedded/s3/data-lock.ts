import { randomUUID } from 'node:crypto';
import { link, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { ensureFolder, hasErrorCode } from './durable-files.ts';

export interface DataLock {
  release(): Promise<void>;
}

interface Holder {
  pid: number;
  /** Distinguishes a process from a later one with the same id. Null if the system does not provide it. */
  startedAt: string | null;
}

/**
 * Locks a data folder for this process. A second server on the same folder would serve an index that lacks the first
 * one's writes. Takes over a lock whose process is gone.
 */
export async function acquireDataLock(dir: string): Promise<DataLock> {
  await ensureFolder(dir);
  const path = join(resolve(dir), 'lock');
  const content = JSON.stringify({ pid: process.pid, startedAt: await readStartTime(process.pid) });
  const claim = `${path}.${randomUUID()}`;
  try {
    await writeFile(claim, content, { flag: 'wx' });
    for (let attempt = 0; attempt < 3; attempt += 1) {
      // A link appears with its content or not at all, so a half-written lock is never read.
      if (await tryLink(claim, path)) return { release: () => rm(path, { force: true }) };
      await removeStaleLock(path, dir);
    }
    throw new Error(`The embedded S3 data folder ${dir} is being taken by several processes at once.`);
  } finally {
    await rm(claim, { force: true });
  }
}

async function tryLink(claim: string, path: string): Promise<boolean> {
  try {
    await link(claim, path);
    return true;
  } catch (error) {
    if (hasErrorCode(error, 'EEXIST')) return false;
    throw error;
  }
}

async function removeStaleLock(path: string, dir: string): Promise<void> {
  const text = await readIfPresent(path);
  if (text === undefined) return;
  const holder = parseHolder(text);
  if (holder !== undefined && (await isAlive(holder))) {
    throw new Error(
      `The embedded S3 data folder ${dir} is in use by process ${String(holder.pid)}; stop it or choose another folder.`,
    );
  }
  // Move it aside first. If another process was faster, this moves its fresh lock, which is then put back.
  const aside = `${path}.${randomUUID()}`;
  try {
    await rename(path, aside);
  } catch (error) {
    if (hasErrorCode(error, 'ENOENT')) return;
    throw error;
  }
  if ((await readIfPresent(aside)) !== text) await tryLink(aside, path);
  await rm(aside, { force: true });
}

function parseHolder(text: string): Holder | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const isHolder = typeof value === 'object' && value !== null && 'pid' in value && 'startedAt' in value;
    return isHolder && typeof value.pid === 'number' ? (value as Holder) : undefined;
  } catch {
    // Links make half-written locks impossible. An unreadable lock is damaged and protects nothing.
    return undefined;
  }
}

async function isAlive(holder: Holder): Promise<boolean> {
  try {
    process.kill(holder.pid, 0);
  } catch (error) {
    return hasErrorCode(error, 'EPERM');
  }
  return holder.startedAt === (await readStartTime(holder.pid));
}

async function readStartTime(pid: number): Promise<string | null> {
  const stat = await readIfPresent(`/proc/${String(pid)}/stat`);
  if (stat === undefined) return null;
  // The command's name in parentheses may contain spaces, so count fields after it. This is field 22.
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null;
}

async function readIfPresent(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (hasErrorCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}
