// Runs ava with V8 options that suit tests. Each test file is a thread that loads every module again and soon ends, so
// less compilation saves time. Node rejects V8 options for threads, and ava passes its process's options on to them; set
// from within, they apply to all threads.
import { pathToFileURL } from 'node:url';
import v8 from 'node:v8';

for (const flag of ['--max-lazy', '--interrupt-budget=1000000', '--no-parallel-scavenge'])
  v8.setFlagsFromString(flag);
process.argv.splice(1, 1);
await import(pathToFileURL(process.argv[1]).href);
