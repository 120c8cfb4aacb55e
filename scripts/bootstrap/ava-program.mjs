// Runs ava's own program with options for V8 that suit tests: each file is a thread that loads everything anew and ends
// soon, so compiling less and later pays. ava passes its process's options on to the threads, which Node does not allow
// for options of V8; set from within they hold for all threads.
import { pathToFileURL } from 'node:url';
import v8 from 'node:v8';

for (const flag of ['--max-lazy', '--interrupt-budget=1000000', '--no-parallel-scavenge'])
  v8.setFlagsFromString(flag);
process.argv.splice(1, 1);
await import(pathToFileURL(process.argv[1]).href);
