export interface ThrottleOptions {
  readonly intervalMs?: number;
  readonly now?: () => number;
}

/**
 * Passes on one warning per interval (a minute by default), with the number of warnings suppressed before. Use it for
 * warnings that anyone can trigger, so that they do not fill the log. Use one throttle per message, so that one message
 * does not suppress another.
 */
export function createThrottledWarning<Details extends unknown[]>(
  warn: (line: string, ...details: Details) => void,
  { intervalMs = 60_000, now = () => performance.now() }: ThrottleOptions = {},
): (line: string, ...details: Details) => void {
  let silentUntilMs = -Infinity;
  let suppressed = 0;
  return (line, ...details) => {
    const nowMs = now();
    if (nowMs < silentUntilMs) {
      suppressed += 1;
      return;
    }
    warn(suppressed === 0 ? line : `${line} (and ${suppressed} more since the last such line)`, ...details);
    silentUntilMs = nowMs + intervalMs;
    suppressed = 0;
  };
}
