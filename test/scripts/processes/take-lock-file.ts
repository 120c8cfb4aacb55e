// Takes the lock file given as argument on request, and keeps it: `fork(take-lock-file.js, [path])`.
import { takeLockFile } from '../../../scripts/processes/lock-file.ts';
import { identifyProcess } from '../../../scripts/processes/process-identity.ts';

process.on('message', () => {
  try {
    takeLockFile(process.argv[2]!, identifyProcess(process.pid), ({ pid }) => new Error(`refused by ${pid}`));
    process.send!('held');
  } catch (error) {
    process.send!((error as Error).message);
  }
});
process.send!('ready');
