// For tests of a command whose npm has exited: `node fake-npm.js <file>` runs this file once more through a shell, as
// npm does; that second process waits for a request to stop and writes its reason into <file>.
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { stopOnSignals } from '../../../scripts/start/stop-on-signals.ts';

const [file, role] = process.argv.slice(2) as [string, string?];
if (role === undefined) {
  const script = `${process.execPath} ${fileURLToPath(import.meta.url)} ${file} command`;
  // A second command keeps any shell from replacing itself.
  spawn('/bin/sh', ['-c', `${script}; exit $?`], { env: { npm_lifecycle_script: script }, stdio: 'inherit' });
} else {
  setInterval(() => undefined, 1_000);
  const exitWith = (reason: string): void => {
    writeFileSync(file, reason);
    process.exit(0);
  };
  stopOnSignals(process.env, { onStop: exitWith, onKill: () => exitWith('killed') });
  console.log(process.pid);
}
