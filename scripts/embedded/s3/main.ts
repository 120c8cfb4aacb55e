// decision 0002
import { parseArgs } from 'node:util';
import { logUncaught } from '../../../shared/platform/runtime/log-uncaught.ts';
import { startEmbeddedS3 } from './server.ts';

logUncaught('s3', { fd: 2 });

async function main(): Promise<void> {
  if (process.env['NODE_ENV'] === 'production') {
    throw new Error(
      'The embedded S3 server is not for real data, so it does not run with NODE_ENV=production.',
    );
  }
  const { values } = parseArgs({
    options: {
      dir: { type: 'string' },
      port: { type: 'string', default: '0' },
      host: { type: 'string', default: '127.0.0.1' },
      region: { type: 'string' },
    },
  });
  const accessKeyId = process.env['AWS_ACCESS_KEY_ID'] ?? '';
  const secretAccessKey = process.env['AWS_SECRET_ACCESS_KEY'] ?? '';
  if (values.dir === undefined || !/^\d{1,5}$/.test(values.port)) {
    throw new Error('Usage: main.js --dir <path> [--port 0] [--host 127.0.0.1] [--region <name>]');
  }
  if (accessKeyId === '' || secretAccessKey === '') {
    throw new Error('AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must be set for the embedded S3 server.');
  }
  const starting = startEmbeddedS3({
    dir: values.dir,
    port: Number(values.port),
    host: values.host,
    region: values.region,
    accessKeyId,
    secretAccessKey,
  });

  // A signal may arrive while the index is still being read, and may arrive twice (from a terminal and a supervisor).
  let closing: Promise<void> | undefined;
  const stop = () => {
    closing ??= starting.then((server) => server.close()).catch(fail);
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  const { endpoint } = await starting;
  console.log(JSON.stringify({ endpoint }));
}

function fail(error: unknown): void {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}

await main().catch(fail);
