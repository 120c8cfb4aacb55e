import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** A program that serves requests of its parent process with `serveRequests`. */
export interface ChildProgram {
  /** Used in the log and in messages, such as `file process`. */
  readonly name: string;
  /** The compiled file. */
  readonly url: URL;
  /** Limit of V8's heap. */
  readonly maxHeapMb: number;
  /**
   * Limit of all writable memory of the process, including native memory. An allocation beyond it fails, which usually
   * ends the process. Not enforced on Windows and macOS. Omitted: no limit.
   */
  readonly maxDataMb?: number;
}

/** Sets the limit if the operating system can, and becomes the program that the other arguments name. */
const limitedStart = 'ulimit -d "$0" 2>/dev/null; exec "$@"';

export function startChild({ url, maxHeapMb, maxDataMb }: ChildProgram): ChildProcess {
  const node = [process.execPath, `--max-old-space-size=${maxHeapMb}`, fileURLToPath(url)] as const;
  const [command, ...args] =
    maxDataMb === undefined || process.platform === 'win32'
      ? node
      : (['/bin/sh', '-c', limitedStart, String(maxDataMb * 1024), ...node] as const);
  const child = spawn(command, args, {
    // A child needs none of this process's secrets.
    env: {},
    serialization: 'advanced',
    // Libraries would write messages about bad files to stdio, and V8 about its memory.
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    windowsHide: true,
  });
  // The code that awaits the reply handles the exit. Without a listener, an 'error' event would crash this process.
  child.on('error', () => undefined);
  return child;
}

export async function endChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const exited = once(child, 'exit');
  child.ref();
  child.kill('SIGKILL');
  await exited;
}

/** Sets whether the child keeps this process alive. */
export function setRef(child: ChildProcess, isNeeded: boolean): void {
  const name = isNeeded ? 'ref' : 'unref';
  child[name]();
  child.channel?.[name]();
}
