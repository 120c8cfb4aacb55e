import { setTimeout as delay } from 'node:timers/promises';

/** Asks until the answer is there. @throws Error naming what was awaited, after a bound far above what it takes. */
export async function waitFor<T>(
  what: string | (() => string),
  ask: () => Promise<T | null | undefined | false> | T | null | undefined | false,
  timeoutMs = 60_000,
): Promise<T> {
  const deadlineMs = performance.now() + timeoutMs;
  for (;;) {
    const answer = await ask();
    if (answer !== null && answer !== undefined && answer !== false) return answer;
    if (performance.now() > deadlineMs) {
      throw new Error(`waited ${timeoutMs} ms in vain for ${typeof what === 'string' ? what : what()}`);
    }
    await delay(20);
  }
}
