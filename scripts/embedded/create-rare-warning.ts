/** Passes on a line a minute at most: what every process of the machine can cause must not fill the log. */
export function createRareWarning(warn: (line: string) => void, intervalMs = 60_000): (line: string) => void {
  let silentUntilMs = -Infinity;
  let suppressed = 0;
  return (line) => {
    const nowMs = performance.now();
    if (nowMs < silentUntilMs) {
      suppressed += 1;
      return;
    }
    warn(suppressed === 0 ? line : `${line} (and ${suppressed} more since the last such line)`);
    silentUntilMs = nowMs + intervalMs;
    suppressed = 0;
  };
}
