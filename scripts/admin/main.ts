import { readLogFormat } from '../../shared/platform/config/config.ts';
import { logUncaught } from '../../shared/platform/runtime/log-uncaught.ts';
import { runCommandLine } from './run-command-line.ts';

logUncaught('admin', { fd: 2, format: readLogFormat(process.env) });

process.exitCode = await runCommandLine(process.argv.slice(2), process.env, process);
