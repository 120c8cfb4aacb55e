// A supervisor of fake parts, for tests that kill one: `node fake-supervisor.js <folder>`. Prints one line of JSON with
// the pids of the parts once all of them run.
import { join } from 'node:path';
import { ConsoleOutput } from '../../../scripts/start/console-output.ts';
import { lockDataDir } from '../../../scripts/start/data-dir-lock.ts';
import { writeEndpoints } from '../../../scripts/start/endpoints-file.ts';
import { Guardian } from '../../../scripts/start/guardian.ts';
import { Stack } from '../../../scripts/start/stack.ts';
import { fakePart, politeCode } from './fake-parts.ts';

const folder = process.argv[2]!;
const dataDir = join(folder, 'data');
const diary = join(folder, 'diary');
const pids: Record<string, number> = {};

const lock = lockDataDir(dataDir);
const guardian = new Guardian();
guardian.start();
const output = new ConsoleOutput({ write: () => undefined });
const recording = {
  ...lock,
  recordPart: (name: string, pid: number | null): void => {
    lock.recordPart(name, pid);
    if (pid !== null) pids[name] = pid;
  },
};
const stack = new Stack({ output, guardian, lock: recording, dataDir });
await stack.run(fakePart(folder, 'redis', politeCode('redis', diary)), 2);
await stack.run(fakePart(folder, 's3', politeCode('s3', diary)), 1);
await stack.run(fakePart(folder, 'api', politeCode('api', diary)), 0);
await stack.run(fakePart(folder, 'worker', politeCode('worker', diary)), 0);
writeEndpoints(dataDir, { REDIS_URL: 'redis://127.0.0.1:1' });

process.on('SIGTERM', () => {
  stack.stop().then(
    () => {
      guardian.stop();
      lock.release();
      process.exit(0);
    },
    () => process.exit(1),
  );
});
console.log(JSON.stringify({ pids, guardian: guardian.pid, leftovers: Object.keys(lock.leftovers) }));
