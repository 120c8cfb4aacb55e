// Runs ava's own program with V8 options that suit tests. Each test file runs in a short-lived thread that loads all
// modules again, so compiling less code, and later, saves time. ava passes its process's options on to the threads, but
// Node does not allow that for V8 options. Options that are set at run time apply to all threads.
import { pathToFileURL } from 'node:url';
import v8 from 'node:v8';

for (const flag of ['--max-lazy', '--interrupt-budget=1000000', '--no-parallel-scavenge'])
  v8.setFlagsFromString(flag);
process.argv.splice(1, 1);
await import(pathToFileURL(process.argv[1]).href);
