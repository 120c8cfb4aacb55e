import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { splitRedisUrls } from '../../shared/platform/redis/redis-urls.ts';
import type { Endpoints, Environment } from '../../shared/platform/config/config.ts';
import { addCredentials } from '../embedded/credentials.ts';
import { findMongod, mongodLaunch, mongodOptions, mongodUrl, waitUntilPrimary } from '../embedded/mongod.ts';
import { findRedis, redisLaunch, waitUntilRedisReady } from '../embedded/redis.ts';
import { checkEmbeddedPackages } from './embedded-packages.ts';
import type { StopStage } from './guardian.ts';
import { findFreePort } from './loopback.ts';
import { dist } from './paths.ts';
import { roleFlags } from './role-flags.ts';
import { readFirstLine } from './read-first-line.ts';
import type { Secrets } from './secrets-file.ts';
import type { PartSpec } from './supervise.ts';

/** One part of the stack: its process, if it runs here, and its endpoints. */
export interface Part {
  /** Null if the environment specifies a server that runs elsewhere. */
  readonly spec: PartSpec | null;
  readonly stage: StopStage;
  /** Valid once the part is ready. */
  endpoints(): Endpoints;
  describe(): string;
}

export interface PartContext {
  /** The unmodified environment, for the processes that are started. */
  readonly env: NodeJS.ProcessEnv;
  readonly values: Environment;
  readonly dataDir: string;
  readonly secrets: Secrets;
}

/** Removes the credentials from one or several server URLs, even if a password contains a `/` or `@`. */
function withoutCredentials(urls: string): string {
  const hide = (url: string): string => {
    const from = url.indexOf('//');
    const to = url.lastIndexOf('@');
    return from < 0 || to < from ? url : `${url.slice(0, from)}//${url.slice(to + 1)}`;
  };
  return splitRedisUrls(urls).map(hide).join(',');
}

function portOf(url: string): string {
  return new URL(url).port;
}

export async function chooseRedis({ env, values, dataDir }: PartContext): Promise<Part> {
  const url = values.REDIS_URL;
  if (url !== undefined) return externalPart({ REDIS_URL: url }, withoutCredentials(url), 2);
  const options = {
    program: findRedis(env['PATH'] ?? ''),
    port: await findFreePort(),
    dir: join(dataDir, 'redis'),
    // Clients send the password to any process that listens on the port, so each start generates a new one. A worker
    // that outlives this stack and keeps reconnecting to the port therefore does not reveal the password of the next
    // Redis.
    password: randomBytes(24).toString('base64url'),
  };
  return {
    stage: 2,
    spec: {
      name: 'redis',
      stopTimeoutMs: 10_000,
      firstStart: 'fail',
      launch: () => redisLaunch(options),
      waitUntilReady: (_child, signal) => waitUntilRedisReady(options.port, options.password, signal),
    },
    endpoints: () => ({ REDIS_URL: `redis://:${options.password}@127.0.0.1:${options.port}` }),
    describe: () => `embedded: ${options.program.name} ${options.program.version}, port ${options.port}`,
  };
}

export async function chooseMongo(context: PartContext): Promise<Part> {
  const { env, values } = context;
  const url = values.MONGODB_URL;
  if (url !== undefined) return externalPart({ MONGODB_URL: url }, withoutCredentials(url), 1);
  const mongod = findMongod(values.MONGOD_BIN, env['PATH'] ?? '');
  return mongod === null ? embeddedMongo(context) : await realMongod(mongod, context);
}

async function realMongod(path: string, { dataDir, secrets }: PartContext): Promise<Part> {
  const port = await findFreePort();
  const options = mongodOptions({ path, port, dataDir, password: secrets.mongodbPassword });
  return {
    stage: 1,
    spec: {
      name: 'mongodb',
      stopTimeoutMs: 30_000,
      firstStart: 'fail',
      launch: () => mongodLaunch(options),
      waitUntilReady: (_child, signal) => waitUntilPrimary(options, signal),
    },
    endpoints: () => ({ MONGODB_URL: mongodUrl(options) }),
    describe: () => `${path}, port ${port}`,
  };
}

function embeddedMongo({ env, dataDir, secrets }: PartContext): Part {
  checkEmbeddedPackages('MongoDB');
  // Use a separate folder, because mongod's files have another format, and mongod may be installed here later.
  const args = ['--dir', join(dataDir, 'mongo')];
  const server = nodeServer((port) => [dist('scripts/embedded/mongo/main.js'), '--port', port, ...args]);
  const { mongodbPassword } = secrets;
  return {
    stage: 1,
    spec: {
      name: 'mongodb',
      stopTimeoutMs: 10_000,
      firstStart: 'fail',
      ...server.runWith(env, mongodbPassword),
    },
    endpoints: () => ({ MONGODB_URL: addCredentials(server.url(), mongodbPassword) }),
    describe: () => `embedded server, port ${portOf(server.url())}`,
  };
}

export function chooseS3({ env, values, dataDir, secrets }: PartContext): Part {
  const location = { S3_BUCKET: values.S3_BUCKET, AWS_REGION: values.AWS_REGION };
  if (values.S3_ENDPOINT !== undefined) {
    const keys = {
      S3_ENDPOINT: values.S3_ENDPOINT,
      AWS_ACCESS_KEY_ID: values.AWS_ACCESS_KEY_ID!,
      AWS_SECRET_ACCESS_KEY: values.AWS_SECRET_ACCESS_KEY!,
    };
    return externalPart({ ...location, ...keys }, `${values.S3_ENDPOINT}, bucket ${values.S3_BUCKET}`, 1);
  }
  checkEmbeddedPackages('S3');
  const credentials = {
    AWS_ACCESS_KEY_ID: secrets.s3AccessKeyId,
    AWS_SECRET_ACCESS_KEY: secrets.s3SecretAccessKey,
  };
  const args = ['--dir', join(dataDir, 's3')];
  const server = nodeServer((port) => [dist('scripts/embedded/s3/main.js'), '--port', port, ...args]);
  return {
    stage: 1,
    spec: {
      name: 's3',
      stopTimeoutMs: 10_000,
      firstStart: 'fail',
      ...server.runWith({ ...env, ...credentials }),
    },
    endpoints: () => ({ ...location, ...credentials, S3_ENDPOINT: server.url() }),
    describe: () => `embedded server, port ${portOf(server.url())}`,
  };
}

export function chooseSmtp({ env, values, dataDir, secrets }: PartContext): Part {
  const { SMTP_URL: url, MAIL_FROM } = values;
  if (url !== undefined) return externalPart({ SMTP_URL: url, MAIL_FROM }, withoutCredentials(url), 1);
  checkEmbeddedPackages('SMTP');
  const dir = join(dataDir, 'outbox');
  const args = ['--dir', dir];
  const server = nodeServer((port) => [dist('scripts/embedded/smtp/main.js'), '--port', port, ...args]);
  const { smtpPassword } = secrets;
  return {
    stage: 1,
    spec: {
      name: 'smtp',
      stopTimeoutMs: 10_000,
      firstStart: 'fail',
      printsOutput: true,
      ...server.runWith(env, smtpPassword),
    },
    endpoints: () => ({ SMTP_URL: addCredentials(server.url(), smtpPassword), MAIL_FROM }),
    describe: () => `embedded server, port ${portOf(server.url())}: mails stay on this machine`,
  };
}

/**
 * A Node server that prints `{"endpoint": "<its address>"}` when it is ready. A restart keeps the port of the first
 * start.
 */
function nodeServer(argsFor: (port: string) => string[]) {
  let url: string | null = null;
  return {
    url: (): string => url!,
    runWith: (env: NodeJS.ProcessEnv, input = '') => ({
      launch: () => ({
        file: process.execPath,
        args: ['--enable-source-maps', ...argsFor(url === null ? '0' : portOf(url))],
        env,
        input,
      }),
      waitUntilReady: async (child: ChildProcess, signal: AbortSignal): Promise<void> => {
        url = (JSON.parse(await readFirstLine(child.stdout!, signal)) as { endpoint: string }).endpoint;
      },
    }),
  };
}

function externalPart(endpoints: Endpoints, description: string, stage: StopStage): Part {
  return { spec: null, stage, endpoints: () => endpoints, describe: () => description };
}

/** The dependencies of a role may start later, so its start is retried forever. */
const role = { stopTimeoutMs: 30_000, firstStart: 'retry', printsOutput: true } as const;

/** The api, in one process or in several. */
export function apiPart(processes: number, env: NodeJS.ProcessEnv): PartSpec {
  const args =
    processes === 1
      ? [...roleFlags, dist('api/main.js')]
      : ['--enable-source-maps', dist('scripts/start/api-processes.js'), '--processes', String(processes)];
  return { ...role, name: 'api', launch: () => ({ file: process.execPath, args, env }) };
}

export interface WorkerPartOptions {
  readonly name: string;
  readonly env: NodeJS.ProcessEnv;
  /** Whether this process asks it for its state and metrics. */
  readonly hasChannel: boolean;
}

export function workerPart({ name, env, hasChannel }: WorkerPartOptions): PartSpec {
  const options = ['--queues', 'chat,image,embedding', '--concurrency', '8192'];
  const args = [...roleFlags, dist('workers/main.js'), ...options];
  return { ...role, name, launch: () => ({ file: process.execPath, args, env, hasChannel }) };
}
