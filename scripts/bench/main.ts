import { logUncaught } from '../../shared/platform/runtime/log-uncaught.ts';
import { ConfigError } from '../../shared/platform/runtime/config-error.ts';
import { describeUsage, readOptions } from './harness/options.ts';
import { runSuites } from './harness/run-suites.ts';
import { Workshop } from './harness/workshop.ts';
import { suites } from './suites/suites.ts';

logUncaught('bench', { fd: 2 });

async function main(): Promise<void> {
  const options = readOptions(suites, process.argv.slice(2));
  if (options === null) {
    console.log(describeUsage(suites));
    return;
  }
  const workshop = new Workshop();
  // Remove all child processes and folders on every exit.
  process.once('exit', () => workshop.destroy());
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const) {
    process.once(signal, () => process.exit(code));
  }
  process.exit((await runSuites(options, workshop)) ? 0 : 1);
}

main().catch((error: unknown) => {
  const isExpected =
    error instanceof ConfigError || (error as { code?: string }).code?.startsWith('ERR_PARSE_ARGS');
  console.error(isExpected ? `${(error as Error).message}\n\n${describeUsage(suites)}` : error);
  process.exit(1);
});
