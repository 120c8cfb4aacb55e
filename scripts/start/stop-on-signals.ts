import { readCommandLine, readParentPid } from './process-identity.ts';

/** npm passes on to us the Ctrl-C that the terminal has sent us already; that is one wish, not two. */
const sameWishMs = 1_000;
const parentPollMs = 300;

export interface StopWishes {
  /** The first wish: to finish what is in hand. */
  onStop(reason: string): void;
  /** The second one: at once. */
  onKill(): void;
}

/** Tells when this process should end: by a signal, or because the npm that started it is gone. */
export function stopOnSignals(env: NodeJS.ProcessEnv, wishes: StopWishes): void {
  let firstAtMs: number | null = null;
  const wish = (reason: string): void => {
    if (firstAtMs === null) {
      firstAtMs = Date.now();
      wishes.onStop(reason);
    } else if (Date.now() - firstAtMs > sameWishMs) {
      wishes.onKill();
    }
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => wish(signal));

  const isNpmGone = watchNpm(env);
  const timer = setInterval(() => {
    if (!isNpmGone()) return;
    clearInterval(timer);
    wish('npm is gone');
  }, parentPollMs);
  timer.unref();
}

/** Whoever starts it from a shell of their own may well leave that shell, so only an npm is watched. */
function watchNpm(env: NodeJS.ProcessEnv): () => boolean {
  const script = env['npm_lifecycle_script'];
  if (script === undefined) return () => false;
  const parent = process.ppid;
  // npm runs scripts by `sh -c`. Not every shell replaces itself by the last command, and one that stays hides npm's end.
  const isShell = readCommandLine(parent)?.includes(script) === true;
  const grandparent = isShell ? readParentPid(parent) : null;
  return () => process.ppid !== parent || (isShell && readParentPid(parent) !== grandparent);
}
