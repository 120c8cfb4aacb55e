import { setTimeout as delay } from 'node:timers/promises';

/** Polls until there is a result. @throws Error with `what` after the timeout, which is far above the expected time */
export async function waitFor<T>(
  what: string | (() => string),
  poll: () => Promise<T | null | undefined | false> | T | null | undefined | false,
  timeoutMs = 60_000,
): Promise<T> {
  const deadlineMs = performance.now() + timeoutMs;
  for (;;) {
    const result = await poll();
    if (result !== null && result !== undefined && result !== false) return result;
    if (performance.now() > deadlineMs) {
      throw new Error(`waited ${timeoutMs} ms for ${typeof what === 'string' ? what : what()}`);
    }
    await delay(20);
  }
}
