// For tests of log lines: `node log-lines.js <lines>` logs this many lines of 500 bytes, notifies its parent, and exits
// when everything is written.
import { setTimeout as delay } from 'node:timers/promises';
import { createLogger } from '../../../../shared/platform/runtime/logger.ts';

const log = createLogger('test', 'info');
const before = process.memoryUsage().rss;
const text = 'x'.repeat(400);
for (let n = 0; n < Number(process.argv[2]); n += 1) {
  log.info({ n, text }, 'a line');
  if (n % 1_000 === 0) await delay(1);
}
process.send?.({ grownBytes: process.memoryUsage().rss - before });
process.disconnect?.();
