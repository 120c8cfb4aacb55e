import { linkSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { ConfigError } from '../../shared/runtime/config.ts';
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
  /** Notes that a part runs as this process, or (null) does not run. */
  recordPart(name: string, pid: number | null): void;
  release(): void;
}

/**
 * Takes DATA_DIR for this supervisor. A lock whose holder is gone is taken over.
 * @throws ConfigError that says who holds it
 */
export function holdDataDir(dataDir: string): DataDirLock {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const path = join(dataDir, 'supervisor.json');
  const claim = `${path}.claim-${process.pid}`;
  const parts: Record<string, ProcessIdentity> = {};
  const self = { ...identifyProcess(process.pid), since: new Date().toISOString() };
  const leftovers: Record<string, ProcessIdentity> = {};
  writePrivateFile(claim, { ...self, parts } satisfies Holder);
  try {
    // A link appears with its whole content or not at all, so nobody reads a lock that is half written.
    while (!tryLink(claim, path)) Object.assign(leftovers, removeStaleLock(path, dataDir));
  } finally {
    rmSync(claim, { force: true });
  }
  return {
    leftovers,
    recordPart(name, pid) {
      if (pid === null) delete parts[name];
      else parts[name] = identifyProcess(pid);
      writePrivateFile(path, { ...self, parts } satisfies Holder);
    },
    release() {
      if ((readPrivateFile(path) as Holder | null)?.pid === process.pid) rmSync(path, { force: true });
    },
  };
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

/** @returns the parts that the dead holder ran and that still run */
function removeStaleLock(path: string, dataDir: string): Record<string, ProcessIdentity> {
  const holder = readPrivateFile(path) as Holder | null;
  if (holder === null) return {};
  if (isRunning(holder)) {
    throw new ConfigError(
      `${resolve(dataDir)} is in use: another "npm start" (pid ${holder.pid}) has run on it since ${holder.since}.\n` +
        `Stop that one, or set DATA_DIR (and PORT) to run a second gateway beside it.`,
    );
  }
  // Moved aside first: where another start was quicker, it is its fresh lock that was moved, and goes back.
  const aside = `${path}.stale-${process.pid}`;
  try {
    renameSync(path, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
    throw error;
  }
  const moved = readPrivateFile(aside) as Holder;
  if (isRunning(moved)) tryLink(aside, path);
  rmSync(aside, { force: true });
  return Object.fromEntries(Object.entries(holder.parts).filter(([, part]) => isRunning(part)));
}
