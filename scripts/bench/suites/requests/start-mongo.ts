import { randomBytes } from 'node:crypto';
import { createLogger } from '../../../../shared/platform/runtime/logger.ts';
import { openMongo, type Database } from '../../../../shared/platform/storage/mongo-client.ts';
import { ConfigError } from '../../../../shared/platform/runtime/config-error.ts';
import { addCredentials } from '../../../embedded/credentials.ts';
import {
  findMongod,
  mongodLaunch,
  mongodOptions,
  mongodUrl,
  waitUntilPrimary,
} from '../../../embedded/mongod.ts';
import { findFreePort } from '../../../start/loopback.ts';
import { dist } from '../../../start/paths.ts';
import type { Programs } from '../../harness/programs.ts';
import { createStartSignal } from '../../harness/stack/stores.ts';

/** Starts a `mongod`: the one of the tests, or of `npm start`. @throws ConfigError if there is none */
export async function startMongod(programs: Programs): Promise<Database> {
  const { TEST_MONGOD_BIN: ofTests, MONGOD_BIN: ofGateway, PATH = '' } = process.env;
  const path = findMongod(ofTests ?? ofGateway, PATH);
  if (path === null)
    throw new ConfigError('There is no mongod. Set MONGOD_BIN, or use --only embedded for the embedded one.');
  const port = await findFreePort();
  const options = mongodOptions({
    path,
    port,
    password: randomBytes(16).toString('hex'),
    dataDir: programs.dir,
  });
  programs.start({ name: 'mongo', env: process.env, ...mongodLaunch(options) });
  await waitUntilPrimary(options, createStartSignal());
  return connect(programs, mongodUrl(options));
}

/** Starts the embedded MongoDB. */
export async function startEmbedded(programs: Programs): Promise<Database> {
  const password = randomBytes(16).toString('hex');
  const program = programs.start({
    name: 'mongo',
    file: process.execPath,
    args: [dist('scripts/embedded/mongo/main.js'), '--dir', programs.dir],
    env: process.env,
    input: password,
    kind: 'prints-address',
  });
  const { endpoint } = await programs.readStartupLine(program);
  return connect(programs, addCredentials(endpoint!, password));
}

function connect(programs: Programs, url: string): Database {
  const mongo = openMongo(url, createLogger('bench', 'silent'));
  programs.beforeStop(() => mongo.close());
  return mongo.db;
}
