import { readCommandLine, readParentPid } from '../processes/process-identity.ts';

/** npm forwards the Ctrl-C that the terminal has already sent us. Both signals are treated as one request to stop. */
const sameRequestMs = 1_000;
const parentPollMs = 300;

export interface StopHandlers {
  /** First request: finish the work in progress. */
  onStop(reason: string): void;
  /** Second request: exit immediately. */
  onKill(): void;
}

/** Reports when this process should exit: after a signal, or when the npm that started it is gone. */
export function stopOnSignals(env: NodeJS.ProcessEnv, handlers: StopHandlers): void {
  let firstAtMs: number | null = null;
  const requestStop = (reason: string): void => {
    if (firstAtMs === null) {
      firstAtMs = Date.now();
      handlers.onStop(reason);
    } else if (Date.now() - firstAtMs > sameRequestMs) {
      handlers.onKill();
    }
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => requestStop(signal));

  const isNpmGone = watchNpm(env);
  const timer = setInterval(() => {
    if (!isNpmGone()) return;
    clearInterval(timer);
    requestStop('npm has exited');
  }, parentPollMs);
  timer.unref();
}

/** Watches the parent only if it is npm, because a user who starts this from a shell may exit that shell. */
function watchNpm(env: NodeJS.ProcessEnv): () => boolean {
  const script = env['npm_lifecycle_script'];
  if (script === undefined) return () => false;
  const parent = process.ppid;
  // npm runs scripts with `sh -c`. Not every shell replaces itself with the last command, and a shell that stays hides
  // npm's exit.
  const isShell = readCommandLine(parent)?.includes(script) === true;
  const grandparent = isShell ? readParentPid(parent) : null;
  return () => process.ppid !== parent || (isShell && readParentPid(parent) !== grandparent);
}
