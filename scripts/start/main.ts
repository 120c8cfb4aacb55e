import { readLogFormat } from '../../shared/platform/config/config.ts';
import { logUncaught } from '../../shared/platform/runtime/log-uncaught.ts';
import { ConfigError } from '../../shared/platform/runtime/config-error.ts';
import { ConsoleOutput } from './console-output.ts';
import { JsonOutput } from './json-output.ts';
import { startGateway } from './start-gateway.ts';
import { readStartOptions } from './start-options.ts';
import { PartFailed } from './supervise.ts';

const logFormat = readLogFormat(process.env);
logUncaught('supervisor', { fd: 2, format: logFormat });

// Do not crash when the reader of the output, such as a terminal, is closed.
process.stdout.on('error', () => undefined);
process.stderr.on('error', () => undefined);

try {
  const options = readStartOptions(process.argv.slice(2));
  const output = logFormat === 'json' ? new JsonOutput() : new ConsoleOutput(process.stdout);
  await startGateway(process.env, options, output);
} catch (error) {
  const isExpected = error instanceof ConfigError || error instanceof PartFailed;
  process.stderr.write(
    `${isExpected ? error.message : error instanceof Error ? error.stack : String(error)}\n`,
  );
  process.exit(1);
}
