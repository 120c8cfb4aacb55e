// For tests: a supervisor that starts a part and a guardian while it has no free file descriptors, and frees some when
// the part fails to start. Once both run, it prints the reasons of the failed starts as JSON.
import { closeSync, openSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { Guardian } from '../../../scripts/start/guardian.ts';
import { SupervisedPart } from '../../../scripts/start/supervise.ts';

const reasons: string[] = [];
const guardian = new Guardian();
const part = new SupervisedPart(
  {
    name: 'one',
    launch: () => ({ file: 'sleep', args: ['60'] }),
    stopTimeoutMs: 5_000,
    firstStart: 'retry',
  },
  {
    onOutput: () => undefined,
    onSpawned: () => undefined,
    onRestarted: () => undefined,
    onGone: () => undefined,
    onDied: ({ reason }) => {
      reasons.push(reason);
      for (const fd of taken.splice(0)) closeSync(fd);
    },
  },
);

const taken: number[] = [];
try {
  for (;;) taken.push(openSync('/dev/null', 'r'));
} catch {
  // No more file descriptors are available.
}
guardian.start();
await part.start();
while (guardian.pid === undefined) await delay(10);
process.stdout.write(JSON.stringify(reasons));
await part.stop();
guardian.stop();
