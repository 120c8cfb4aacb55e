import { linkSync, renameSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { ConfigError } from '../../shared/runtime/config-error.ts';
import { prepareDataDir, tryOn } from './prepare-data-dir.ts';
import { readPrivateFile, writePrivateFile } from './private-file.ts';
import { identifyProcess, isRunning, type ProcessIdentity } from './process-identity.ts';

interface Holder extends ProcessIdentity {
  readonly since: string;
  /** What this supervisor runs, so that the next one can end what a kill -9 left behind. */
  readonly parts: Record<string, ProcessIdentity>;
}

export interface DataDirLock {
  /** Parts of an earlier supervisor that did not end with it. */
  readonly leftovers: Readonly<Record<string, ProcessIdentity>>;
  /** Records the process that a part runs as, or null if it is not running. */
  recordPart(name: string, pid: number | null): void;
  release(): void;
}

/** Delay before the list of running parts is written again after a failure. */
const retryMs = 1_000;

/**
 * Locks DATA_DIR for this supervisor. Takes over a lock whose holder is gone.
 * @throws ConfigError that says who holds it, or why the folder cannot be used
 */
export function holdDataDir(dataDir: string): DataDirLock {
  prepareDataDir(dataDir);
  const path = join(dataDir, 'supervisor.json');
  const claim = `${path}.claim-${process.pid}`;
  const parts: Record<string, ProcessIdentity> = {};
  const self = { ...identifyProcess(process.pid), since: new Date().toISOString() };
  const leftovers: Record<string, ProcessIdentity> = {};
  tryOn(dataDir, path, () => {
    writePrivateFile(claim, { ...self, parts } satisfies Holder);
    try {
      // A link appears with its whole content or not at all, so a half-written lock is never read.
      while (!tryLink(claim, path)) Object.assign(leftovers, removeStaleLock(path, dataDir));
    } finally {
      rmSync(claim, { force: true });
    }
  });
  let retry: NodeJS.Timeout | undefined;
  const save = (): void => {
    clearTimeout(retry);
    try {
      writePrivateFile(path, { ...self, parts } satisfies Holder);
    } catch {
      // The disk may be full. The running parts continue. Only a start after a kill -9 of everything would miss what
      // is not written.
      retry = setTimeout(save, retryMs).unref();
    }
  };
  return {
    leftovers,
    recordPart(name, pid) {
      if (pid === null) delete parts[name];
      else parts[name] = identifyProcess(pid);
      save();
    },
    release() {
      clearTimeout(retry);
      try {
        if (readHolder(path)?.pid === process.pid) rmSync(path, { force: true });
      } catch {
        // A leftover lock is stale for the next start.
      }
    },
  };
}

/**
 * Returns null if there is no lock, or a damaged one. Locks are never half written, so a damaged lock protects
 * nothing.
 */
function readHolder(path: string): Holder | null {
  try {
    const holder = readPrivateFile(path) as Partial<Holder> | null;
    return typeof holder?.pid === 'number' && holder.startedAt !== undefined
      ? { since: 'an unknown time', parts: {}, ...(holder as ProcessIdentity) }
      : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

function tryLink(claim: string, path: string): boolean {
  try {
    linkSync(claim, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/** @returns the parts of the dead holder that still run */
function removeStaleLock(path: string, dataDir: string): Record<string, ProcessIdentity> {
  const holder = readHolder(path);
  if (holder !== null && isRunning(holder)) {
    throw new ConfigError(
      `${resolve(dataDir)} is in use: another "npm start" (pid ${holder.pid}) has run on it since ${holder.since}.\n` +
        `Stop that one, or set DATA_DIR (and PORT) to run a second gateway beside it.`,
    );
  }
  // Move it aside first. If another start was faster, this moves its fresh lock, which is then put back.
  const aside = `${path}.stale-${process.pid}`;
  try {
    renameSync(path, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
    throw error;
  }
  const moved = readHolder(aside);
  if (moved !== null && isRunning(moved)) tryLink(aside, path);
  rmSync(aside, { force: true });
  return Object.fromEntries(Object.entries(holder?.parts ?? {}).filter(([, part]) => isRunning(part)));
}
