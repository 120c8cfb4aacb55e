import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { isAlive } from '../../shared/platform/runtime/is-alive.ts';

/** Identifies a process and distinguishes it from later ones with the same id. */
export interface ProcessIdentity {
  readonly pid: number;
  /** In the system's format, only for comparison. Null if the process is gone. */
  readonly startedAt: string | null;
}

export function identifyProcess(pid: number): ProcessIdentity {
  return { pid, startedAt: readStartTime(pid) };
}

export function isRunning(identity: ProcessIdentity): boolean {
  return isAlive(identity.pid) && readStartTime(identity.pid) === identity.startedAt;
}

function readStartTime(pid: number): string | null {
  if (process.platform !== 'linux') return queryPs('lstart=', pid);
  const fields = readStat(pid);
  // A zombie is not running. It waits for its parent to read its exit code.
  return fields === null || fields[0] === 'Z' ? null : (fields[19] ?? null);
}

/** Returns null if the process is gone. */
export function readParentPid(pid: number): number | null {
  const parent = process.platform === 'linux' ? readStat(pid)?.[1] : queryPs('ppid=', pid);
  return parent === undefined || parent === null ? null : Number(parent);
}

/** Returns the program and its arguments, separated by spaces. Null if the process is gone. */
export function readCommandLine(pid: number): string | null {
  if (process.platform !== 'linux') return queryPs('command=', pid);
  return readProc(pid, 'cmdline')?.replaceAll('\0', ' ').trim() ?? null;
}

/** Returns the fields of /proc/<pid>/stat after the program's name, which is in parentheses and may contain spaces. */
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

function queryPs(column: string, pid: number): string | null {
  return spawnSync('ps', ['-o', column, '-p', String(pid)], { encoding: 'utf8' }).stdout.trim() || null;
}

/** Ends processes that are not our children: with SIGTERM, and after `timeoutMs` with SIGKILL. */
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
