import { EventEmitter, once } from 'node:events';
import { mkdir, mkdtemp, rename, rm, symlink, unlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import type { Catalog } from '../../../shared/catalog/catalog-schema.ts';
import { CatalogStore } from '../../../shared/catalog/catalog-store.ts';
import { CatalogError } from '../../../shared/catalog/parse-catalog.ts';
import {
  createRedis,
  waitUntilReady,
  type RedisClient,
} from '../../../shared/platform/redis/redis-client.ts';
import { redisKeys } from '../../../shared/platform/redis/redis-keys.ts';
import { ConfigError } from '../../../shared/platform/runtime/config-error.ts';
import { startTestRedis, type TestRedis } from '../../support/redis.ts';
import { waitFor } from '../../support/wait-for.ts';

interface LogLine {
  readonly level: number;
  readonly msg: string;
  readonly [field: string]: unknown;
}

/** Collects log lines, and can wait for a line. */
function createLogCollector() {
  const lines: LogLine[] = [];
  const arrivals = new EventEmitter();
  const log = pino(
    { level: 'info' },
    {
      write: (line: string) => {
        lines.push(JSON.parse(line) as LogLine);
        arrivals.emit('line');
      },
    },
  );
  const waitFor = async (text: string): Promise<LogLine> => {
    for (;;) {
      const found = lines.find(({ msg }) => msg.includes(text));
      if (found !== undefined) return found;
      await once(arrivals, 'line');
    }
  };
  return { log, lines, waitFor };
}

let redisServer: TestRedis;
let redis: RedisClient;

test.before(async () => {
  redisServer = await startTestRedis();
  redis = createRedis(redisServer.url, 'commands', pino({ level: 'silent' }));
  await waitUntilReady(redis);
});

test.after.always(async () => {
  redis.disconnect();
  await redisServer.stop();
});

const model = (id: string, more = ''): string =>
  `  - { id: ${id}, type: chat, context: 9, pricing: { prompt: 1 }, routes: [{ upstream: lab }]${more} }`;
const fileOf = (...models: string[]): string =>
  ['upstreams: { lab: { kind: builtin } }', 'models:', ...models, ''].join('\n');

async function makeDirectory(t: ExecutionContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'catalog-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

async function openStore(t: ExecutionContext, text: string, env: Record<string, string> = {}) {
  const path = join(await makeDirectory(t), 'catalog.yaml');
  await writeFile(path, text);
  const collector = createLogCollector();
  const store = await CatalogStore.open({ path, env, redis, log: collector.log });
  t.teardown(() => store.close());
  return { store, path, ...collector };
}

function nextReload(store: CatalogStore): Promise<Catalog> {
  return new Promise((resolve) => {
    store.onReload(resolve);
  });
}

test('a catalog that is invalid or missing does not open', async (t) => {
  const directory = await makeDirectory(t);
  const path = join(directory, 'catalog.yaml');
  const open = () => CatalogStore.open({ path, env: {}, redis, log: pino({ level: 'silent' }) });
  await t.throwsAsync(open(), { instanceOf: ConfigError, message: /cannot be read: there is no such file/ });
  await writeFile(path, fileOf(model('a'), model('a')));
  const error = await t.throwsAsync(open(), { instanceOf: CatalogError });
  t.is(error?.message, `${path}:4:11 models[1].id repeats "a", which is already models[0].id`);
});

test('the warnings of a catalog are logged when it is opened', async (t) => {
  const upstream = 'upstreams: { lab: { kind: openai, baseUrl: "http://127.0.0.1/v1", apiKeys: [env:KEY] } }';
  const { store, lines } = await openStore(t, fileOf(model('a')).replace(/^.*$/m, upstream));
  t.deepEqual(
    lines.map(({ msg }) => msg),
    ['catalog: upstream lab is skipped: KEY is not set; inactive models: a'],
  );
  t.false(store.isActive(store.find('a')!));
});

test('a changed file takes effect, and the log reports what changed', async (t) => {
  const { store, path, waitFor } = await openStore(t, fileOf(model('a'), model('b'), model('c')));
  const reloaded = nextReload(store);
  await writeFile(path, fileOf(model('a'), model('b', ', name: Bee'), model('d')));
  const catalog = await reloaded;
  t.is(store.current, catalog);
  t.is(store.find('c'), undefined);
  t.is(store.find('b')?.published.name, 'Bee');
  t.like(await waitFor('reloaded'), {
    level: 30,
    modelsAdded: ['d'],
    modelsRemoved: ['c'],
    modelsChanged: ['b'],
    upstreamsAdded: [],
    upstreamsRemoved: [],
    upstreamsChanged: [],
  });
});

test('a changed key is reported as a change of its upstream, without the key', async (t) => {
  const fileWith = (key: string): string =>
    fileOf(model('a')).replace(
      'kind: builtin',
      `kind: openai, baseUrl: "http://127.0.0.1/v1", apiKeys: [${key}]`,
    );
  const { store, path, lines, waitFor } = await openStore(t, fileWith('old-secret'));
  const reloaded = nextReload(store);
  await writeFile(path, fileWith('new-secret'));
  t.deepEqual((await reloaded).upstreams[0]?.apiKeys, ['new-secret']);
  t.like(await waitFor('reloaded'), { modelsChanged: [], upstreamsChanged: ['lab'] });
  t.false(JSON.stringify(lines).includes('secret'));
});

test('a bad file keeps the old catalog and logs every problem with its position, and the next good one is loaded', async (t) => {
  const { store, path, lines, waitFor } = await openStore(t, fileOf(model('a')));
  const before = store.current;
  let reloads = 0;
  store.onReload(() => {
    reloads += 1;
  });
  await writeFile(path, fileOf(model('a', ', colour: red'), '  - { id: b }'));
  await waitFor('the old one stays in effect');
  t.is(store.current, before);
  t.is(reloads, 0);
  const errors = lines.filter(({ level }) => level === 50);
  t.is(errors[0]?.msg, `catalog: ${path}:3:91 models[0].colour is not a known field`);
  t.like(errors[0], { line: 3, column: 91 });
  t.deepEqual(
    errors.slice(1, -1).map(({ msg }) => msg.slice(msg.indexOf('models['))),
    ['type', 'context', 'pricing', 'routes'].map((field) => `models[1].${field} is required`),
  );

  await writeFile(path, fileOf(model('a')));
  await waitFor('back to its loaded content');
  t.is(store.current, before);
  t.is(reloads, 0);

  const reloaded = nextReload(store);
  await writeFile(path, fileOf(model('b')));
  await reloaded;
  t.truthy(store.find('b'));
  t.is(reloads, 1);
});

test('a file is reloaded, too, if it is replaced or if a symlink on its path changes', async (t) => {
  const directory = await makeDirectory(t);
  // As Kubernetes mounts a ConfigMap: catalog.yaml → ..data/catalog.yaml, and ..data → one directory per version.
  for (const version of ['one', 'two']) {
    await mkdir(join(directory, version));
    await writeFile(join(directory, version, 'catalog.yaml'), fileOf(model(version)));
  }
  await symlink('one', join(directory, '..data'));
  await symlink(join('..data', 'catalog.yaml'), join(directory, 'catalog.yaml'));
  const path = join(directory, 'catalog.yaml');
  const store = await CatalogStore.open({ path, env: {}, redis, log: pino({ level: 'silent' }) });
  t.teardown(() => store.close());

  const swapped = nextReload(store);
  await symlink('two', join(directory, '..data_tmp'));
  await rename(join(directory, '..data_tmp'), join(directory, '..data'));
  t.truthy((await swapped).find('two'));

  const replaced = nextReload(store);
  await writeFile(join(directory, 'draft'), fileOf(model('three')));
  await rename(join(directory, 'draft'), path);
  t.truthy((await replaced).find('three'));
});

test('if the file is removed, the catalog stays in effect until the file is back', async (t) => {
  const { store, path, waitFor } = await openStore(t, fileOf(model('a')));
  await unlink(path);
  t.is((await waitFor('cannot be read')).level, 50);
  t.truthy(store.find('a'));
  const reloaded = nextReload(store);
  await writeFile(path, fileOf(model('b')));
  t.truthy((await reloaded).find('b'));
});

test('a file that is touched but unchanged is not reloaded', async (t) => {
  const { store, path, lines } = await openStore(t, fileOf(model('a')));
  const seen: Catalog[] = [];
  store.onReload((catalog) => seen.push(catalog));
  const other = await openStore(t, fileOf(model('x')));
  const touchedAt = new Date(Date.now() - 60_000);
  await utimes(path, touchedAt, touchedAt);
  // Once another store has reloaded twice, this one has checked its own file at least twice, too.
  for (const id of ['y', 'z']) {
    const reloaded = nextReload(other.store);
    await writeFile(other.path, fileOf(model(id)));
    await reloaded;
  }
  t.deepEqual(seen, []);
  t.deepEqual(lines, []);
});

test('a price keeps its start date across a reload that does not change it', async (t) => {
  const dated = model('a').replace('prompt: 1', 'prompt: 1, since: 2020-01-01');
  const { store, path } = await openStore(t, fileOf(dated));
  const reloaded = nextReload(store);
  await writeFile(path, fileOf(model('a'), model('b')));
  const catalog = await reloaded;
  t.is(catalog.find('a')?.pricing.date_of_use, '2020-01-01');
  t.is(catalog.find('b')?.pricing.date_of_use, new Date().toISOString().slice(0, 10));
});

test('if one listener fails, the others still get the catalog', async (t) => {
  const { store, path, waitFor } = await openStore(t, fileOf(model('a')));
  store.onReload(() => {
    throw new Error('a listener of the test');
  });
  const reloaded = nextReload(store);
  await writeFile(path, fileOf(model('b')));
  t.truthy((await reloaded).find('b'));
  t.is((await waitFor('listener failed')).level, 50);
});

test.serial(
  'a model that an administrator turned off is inactive, and active again once it is turned on',
  async (t) => {
    await redis.sadd(redisKeys.disabledModels, 'a');
    const { store } = await openStore(t, fileOf(model('a', ', aliases: [one]'), model('b')));
    t.false(store.isActive(store.find('one')!));
    t.true(store.isActive(store.find('b')!));
    await redis.srem(redisKeys.disabledModels, 'a');
    t.false(store.isActive(store.find('a')!));
    await store.refreshDisabled();
    t.true(store.isActive(store.find('a')!));
  },
);

test('while Redis is unavailable the last known model switches apply, one warning is logged, and reading is retried', async (t) => {
  let server = await startTestRedis();
  const client = createRedis(server.url, 'commands', pino({ level: 'silent' }));
  t.teardown(async () => {
    client.disconnect();
    await server.stop();
  });
  const { log, lines } = createLogCollector();
  await waitUntilReady(client);
  await client.sadd(redisKeys.disabledModels, 'a');
  const path = join(await makeDirectory(t), 'catalog.yaml');
  await writeFile(path, fileOf(model('a'), model('b')));
  const store = await CatalogStore.open({ path, env: {}, redis: client, log });
  t.teardown(() => store.close());

  await server.stop();
  await waitFor('the interruption', () => client.status !== 'ready');
  await store.refreshDisabled();
  await store.refreshDisabled();
  t.false(store.isActive(store.find('a')!));
  t.is(lines.filter(({ msg }) => msg.includes('the last known ones apply')).length, 1);

  // Redis comes back empty, so no model is turned off any longer.
  server = await startTestRedis({ port: server.port });
  await waitUntilReady(client, 60_000);
  const reloaded = nextReload(store);
  await writeFile(path, fileOf(model('a'), model('c')));
  await reloaded;
  t.true(store.isActive(store.find('a')!));
});
