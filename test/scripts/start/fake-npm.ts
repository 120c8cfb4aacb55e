// Simulates npm, for tests of a command whose npm has exited: `node fake-npm.js <file>` starts this file again as the
// command, through a shell, as npm does. The command waits for a request to stop, and writes the reason to <file>.
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { stopOnSignals } from '../../../scripts/start/stop-on-signals.ts';

const [file, role] = process.argv.slice(2) as [string, string?];
if (role === undefined) {
  const script = `${process.execPath} ${fileURLToPath(import.meta.url)} ${file} command`;
  // The second command keeps the shell running: without it, some shells replace themselves with the script.
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
