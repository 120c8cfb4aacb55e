import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { isAlive } from '../../shared/runtime/config.ts';

/** A process, told from a later one that was given the same id. */
export interface ProcessIdentity {
  readonly pid: number;
  /** As the system writes it: only good for comparing. Null where the process is gone. */
  readonly startedAt: string | null;
}

export function identifyProcess(pid: number): ProcessIdentity {
  return { pid, startedAt: readStartTime(pid) };
}

export function isRunning(identity: ProcessIdentity): boolean {
  return isAlive(identity.pid) && readStartTime(identity.pid) === identity.startedAt;
}

function readStartTime(pid: number): string | null {
  if (process.platform !== 'linux') return askPs('lstart=', pid);
  const fields = readStat(pid);
  // A zombie does nothing any more; it only waits for its parent to ask for its exit code.
  return fields === null || fields[0] === 'Z' ? null : (fields[19] ?? null);
}

/** Null where the process is gone. */
export function readParentPid(pid: number): number | null {
  const parent = process.platform === 'linux' ? readStat(pid)?.[1] : askPs('ppid=', pid);
  return parent === undefined || parent === null ? null : Number(parent);
}

/** The program and its arguments, separated by blanks; null where the process is gone. */
export function readCommandLine(pid: number): string | null {
  if (process.platform !== 'linux') return askPs('command=', pid);
  return readProc(pid, 'cmdline')?.replaceAll('\0', ' ').trim() ?? null;
}

/** The fields of /proc/<pid>/stat that follow the program's name, which stands in parentheses and may hold blanks. */
function readStat(pid: number): string[] | null {
  const stat = readProc(pid, 'stat');
  return stat === null ? null : stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

function readProc(pid: number, file: string): string | null {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return null;
    throw error;
  }
}

function askPs(column: string, pid: number): string | null {
  return spawnSync('ps', ['-o', column, '-p', String(pid)], { encoding: 'utf8' }).stdout.trim() || null;
}

/** Ends processes that are not our children: SIGTERM, then SIGKILL to those that are still there after `timeoutMs`. */
export async function endProcesses(identities: readonly ProcessIdentity[], timeoutMs: number): Promise<void> {
  const signal = (name: NodeJS.Signals): void => {
    for (const identity of identities) if (isRunning(identity)) process.kill(identity.pid, name);
  };
  const waitUntilGone = async (limitMs: number): Promise<boolean> => {
    const deadlineMs = Date.now() + limitMs;
    while (identities.some(isRunning)) {
      if (Date.now() > deadlineMs) return false;
      await delay(20);
    }
    return true;
  };
  signal('SIGTERM');
  if (await waitUntilGone(timeoutMs)) return;
  signal('SIGKILL');
  await waitUntilGone(2_000);
}
