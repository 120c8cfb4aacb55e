import { text } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import { logUncaught } from '../../../shared/platform/runtime/log-uncaught.ts';
import { startEmbeddedSmtp } from './server.ts';

logUncaught('smtp', { fd: 2 });

/**
 * `node main.js --dir <path> [--port 0]`: prints its address as one JSON line, then serves until SIGTERM. Reads the
 * password from stdin, so that it is not in process lists.
 */
async function main(): Promise<void> {
  if (process.env['NODE_ENV'] === 'production') {
    throw new Error(
      'The embedded SMTP server does not send mails, so it does not run with NODE_ENV=production; set SMTP_URL.',
    );
  }
  const { values } = parseArgs({
    options: { dir: { type: 'string' }, port: { type: 'string', default: '0' } },
  });
  const { dir, port } = values;
  if (dir === undefined || !/^\d{1,5}$/.test(port)) throw new Error('Usage: main.js --dir <path> [--port 0]');
  const password = (await text(process.stdin)).trim();
  if (password === '') throw new Error('The embedded SMTP server needs a password on its standard input.');
  const server = await startEmbeddedSmtp({ dir, password, port: Number(port) });
  let isStopping = false;
  const stop = () => {
    if (isStopping) return;
    isStopping = true;
    server.close().then(() => process.exit(0), fail);
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  // The level makes the console skip this line, so that it shows only lines about mails.
  console.log(JSON.stringify({ level: 'debug', endpoint: server.endpoint }));
}

function fail(error: unknown): void {
  console.error(error instanceof Error ? error.message : String(error));
  process.exit(1);
}

main().catch(fail);
