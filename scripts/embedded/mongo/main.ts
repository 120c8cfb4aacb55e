// decision 0002
import { text } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import { logUncaught } from '../../../shared/platform/runtime/log-uncaught.ts';
import { startEmbeddedMongo } from './server.ts';

logUncaught('mongodb', { fd: 2 });

/**
 * `node main.js --dir <path> [--port 0] [--sync off]`: prints its address as one JSON line, then serves until
 * SIGTERM. Reads the password from stdin, so that it is not in process lists.
 */
async function main(): Promise<void> {
  if (process.env.NODE_ENV === 'production') {
    throw new Error('The embedded MongoDB does not run with NODE_ENV=production; set MONGODB_URL.');
  }
  const { values } = parseArgs({
    options: {
      dir: { type: 'string' },
      port: { type: 'string', default: '0' },
      sync: { type: 'string', default: 'on' },
    },
  });
  const { dir, port, sync } = values;
  if (dir === undefined || !/^\d+$/.test(port) || (sync !== 'on' && sync !== 'off')) {
    throw new Error('usage: main.js --dir <path> [--port <number>] [--sync on|off]');
  }
  const password = (await text(process.stdin)).trim();
  if (password === '') throw new Error('The embedded MongoDB needs a password on its standard input.');
  const mongo = await startEmbeddedMongo({
    dir,
    password,
    port: Number(port),
    sync: sync === 'on',
    onBroken: fail,
  });
  let isStopping = false;
  const stop = () => {
    if (isStopping) return;
    isStopping = true;
    mongo.close().then(() => process.exit(0), fail);
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  console.log(JSON.stringify({ endpoint: mongo.endpoint }));
}

function fail(error: unknown): void {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
}

main().catch(fail);
