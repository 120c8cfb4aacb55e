import { existsSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import test from 'ava';
import { parse } from 'yaml';
import { ConfigError } from '../../shared/platform/runtime/config-error.ts';
import { loadConfig } from '../../shared/platform/config/config.ts';

interface Service {
  readonly image: string;
  readonly build?: string;
  readonly command: readonly string[];
  readonly environment?: Readonly<Record<string, string | number>>;
  readonly env_file?: string;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly logging?: { readonly driver: string; readonly options: Readonly<Record<string, string>> };
  readonly mem_limit?: string;
  readonly tmpfs?: readonly string[];
  readonly stop_grace_period?: string;
  readonly container_name?: string;
}

const text = readFileSync('docker-compose.yml', 'utf8');
const compose = parse(text, { merge: true }) as {
  services: Record<'api' | 'worker' | 'redis' | 'mongo' | 'garage', Service>;
  volumes: Record<string, unknown>;
  configs: { garage: { content: string } };
};
const { services } = compose;
const roles = { api: services.api, worker: services.worker };
const dockerfile = readFileSync('Dockerfile', 'utf8');

/** `${NAME:?message}` and `${NAME:-default}`, as compose substitutes them. */
const placeholder = /\$\{([A-Z0-9_]+):([?-])([^}]*)\}/g;
const required = [
  ...new Set([...text.matchAll(placeholder)].filter(([, , kind]) => kind === '?').map(([, name]) => name!)),
];

function fillIn(
  environment: Service['environment'],
  requiredValues: Record<string, string>,
): Record<string, string> {
  const fill = (value: string): string =>
    value.replaceAll(placeholder, (_, name: string, kind: string, word: string) => {
      return requiredValues[name] ?? (kind === '-' ? word : '');
    });
  return Object.fromEntries(
    Object.entries(environment ?? {}).map(([name, value]) => [name, fill(String(value))]),
  );
}

const requiredValues = Object.fromEntries(required.map((name) => [name, 'x'.repeat(40)]));

test('api and worker get everything that production requires, at addresses that other containers can reach', (t) => {
  for (const service of Object.values(roles)) {
    const config = loadConfig(fillIn(service.environment, requiredValues));
    t.true(config.production);
    t.is(config.host, '0.0.0.0');
    t.is(new URL(config.redisUrl).hostname, 'redis');
    t.is(new URL(config.mongodbUrl).hostname, 'mongo');
    t.is(new URL(config.s3.endpoint).hostname, 'garage');
  }
});

test('the compose file and the product require the variables that the operator must set, and .env.example lists each without a value', (t) => {
  t.deepEqual(required.toSorted(), ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'MASTER_KEY']);
  const example = readFileSync('.env.example', 'utf8');
  for (const name of required) {
    t.regex(example, new RegExp(`^${name}=$`, 'm'));
    const { [name]: _without, ...incomplete } = requiredValues;
    t.throws(() => loadConfig(fillIn(roles.api.environment, incomplete)), { instanceOf: ConfigError });
  }
  t.regex(readFileSync('.gitignore', 'utf8'), /^\.env$/m);
});

test('.env.example names exactly the variables that the compose file sets itself, which .env cannot override', (t) => {
  const fixed = Object.entries(roles.api.environment ?? {}).filter(
    ([, value]) => !String(value).includes('${'),
  );
  const listed =
    /those that docker-compose\.yml sets itself, which win over this file: ([^.]*) are changed there/.exec(
      readFileSync('.env.example', 'utf8').replaceAll('\n# ', ' '),
    );
  t.deepEqual(listed?.[1]?.split(/, | and /).toSorted(), fixed.map(([name]) => name).toSorted());
});

const findEntryPoint = (command: readonly string[]): string =>
  command.find((part) => part.endsWith('.js')) ?? '';

test('both roles run from one image, with files that the build creates', (t) => {
  t.is(roles.api.image, roles.worker.image);
  for (const { command } of Object.values(roles)) {
    t.is(command[0], 'node');
    t.true(existsSync(findEntryPoint(command)), command.join(' '));
  }
  const byDefault = /^CMD (.*)$/m.exec(dockerfile);
  // The heap limit depends on the memory limit, which only the compose file sets.
  const withoutHeapLimit = roles.api.command.filter((part) => !part.startsWith('--max-old-space-size='));
  t.deepEqual(JSON.parse(byDefault?.[1] ?? 'null'), withoutHeapLimit);
  const admin = /exec api node (\S+)/.exec(text);
  t.true(existsSync(admin?.[1] ?? ''));
});

test('workers can be scaled: they publish no port, and no service has a fixed container name', (t) => {
  t.is(services.worker.ports, undefined);
  for (const service of Object.values(services)) t.is(service.container_name, undefined);
});

test('only the api is published, and only on loopback', (t) => {
  t.deepEqual(services.api.ports, ['127.0.0.1:8080:8080']);
  for (const name of ['redis', 'mongo', 'garage'] as const) t.is(services[name].ports, undefined);
});

test('a role starts when its backing services are healthy, and has time to finish its work', (t) => {
  for (const { depends_on: needs, stop_grace_period: grace } of Object.values(roles)) {
    t.deepEqual(Object.keys(needs ?? {}), ['redis', 'mongo', 'garage']);
    for (const [name, { condition }] of Object.entries(needs ?? {})) {
      t.is(condition, 'service_healthy');
      t.truthy(services[name as 'redis'].healthcheck?.test.length);
    }
    t.is(grace, '35s');
  }
});

test('every argument of every command and health check is a string', (t) => {
  // An unquoted argument with a colon would be a YAML mapping, which compose rejects.
  for (const { command, healthcheck } of Object.values(services)) {
    for (const part of [...command, ...(healthcheck?.test ?? [])]) t.is(typeof part, 'string');
  }
});

test('Redis persists its writes and evicts nothing, MongoDB is a replica set, and all stores have volumes for their data', (t) => {
  const { redis, mongo, garage } = services;
  t.regex(redis.command.join(' '), /--appendonly yes .*--maxmemory-policy noeviction/);
  t.regex(mongo.command.join(' '), /--replSet rs0/);
  t.regex(mongo.healthcheck?.test.join(' ') ?? '', /rs\.initiate\(.*isWritablePrimary/s);
  for (const { volumes } of [redis, mongo, garage]) {
    t.true(Object.hasOwn(compose.volumes, volumes?.[0]?.split(':')[0] ?? ''));
  }
});

/** Converts sizes like `4g` and `2gb` to MB. */
function toMb(size = ''): number {
  const [, digits, unit] = /^(\d+)(g|m)b?$/.exec(size) ?? [];
  return Number(digits) * (unit === 'g' ? 1_024 : 1);
}

test('logs are limited, and so is the memory of every service', (t) => {
  for (const [name, { logging, mem_limit: limit }] of Object.entries(services)) {
    t.deepEqual(logging, { driver: 'json-file', options: { 'max-size': '20m', 'max-file': '5' } }, name);
    t.true(toMb(limit) >= 1_024, name);
  }
});

test("each program's heap or cache limit is at most half of its service's memory limit, because it also uses other memory", (t) => {
  const { api, worker, redis, mongo } = services;
  const limits = [
    [api, /--max-old-space-size=(\d+)/, 1],
    [worker, /--max-old-space-size=(\d+)/, 1],
    [redis, /--maxmemory (\d+gb)/, 1],
    [mongo, /--wiredTigerCacheSizeGB (\d+)/, 1_024],
  ] as const;
  for (const [{ command, mem_limit: limit }, option, unit] of limits) {
    const value = option.exec(command.join(' '))?.[1] ?? '';
    const ownLimitMb = /\D/.test(value) ? toMb(value) : Number(value) * unit;
    t.true(ownLimitMb > 0 && ownLimitMb * 2 <= toMb(limit), command.join(' '));
  }
});

test("a worker's health check reads the file that the worker writes, in a tmpfs", (t) => {
  const { command, healthcheck, tmpfs } = services.worker;
  const path = command[command.indexOf('--health-file') + 1]!;
  t.deepEqual(healthcheck?.test, ['CMD', 'node', 'dist/workers/health.js', path]);
  t.true(existsSync('dist/workers/health.js'));
  t.is(tmpfs?.[0]?.split(':')[0], dirname(path));
});

test('Garage serves the region that the gateway signs for, and its RPC only on loopback', (t) => {
  const { content } = compose.configs.garage;
  const region = /^s3_region = "(.*)"$/m.exec(content)?.[1];
  t.is(region, String(services.api.environment?.['AWS_REGION']));
  t.regex(content, /^rpc_bind_addr = "127\.0\.0\.1:\d+"$/m);
  t.regex(content, /^\[s3_api\]\napi_bind_addr = "0\.0\.0\.0:3900"$/m);
  t.is(new URL(String(services.api.environment?.['S3_ENDPOINT'])).port, '3900');
});

test('the image runs as an ordinary user, is stopped by SIGTERM, and contains neither tests nor secrets', (t) => {
  const [build, final] = dockerfile.split(/^FROM /m).slice(1);
  t.regex(final!, /^USER node$/m);
  t.regex(final!, /^STOPSIGNAL SIGTERM$/m);
  t.notRegex(final!, /^COPY \. /m);
  t.regex(build!, /prune --omit=dev/);
  t.regex(build!, /npm uninstall --no-save .*optionalDependencies/s);
  const bases = [...dockerfile.matchAll(/^FROM node:(\d+)-/gm)].map(([, version]) => version);
  t.deepEqual(
    bases,
    Array.from({ length: 2 }, () => readFileSync('.nvmrc', 'utf8').trim()),
  );
  const ignored = readFileSync('.dockerignore', 'utf8').split('\n');
  for (const name of ['.env', '.data', '.git', 'node_modules', 'test', 'examples'])
    t.true(ignored.includes(name), name);
});
