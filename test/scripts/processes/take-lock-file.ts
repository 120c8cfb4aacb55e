// `fork(take-lock-file.js, [path])`: on each message, tries to take the lock file at this path, and reports the result.
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
