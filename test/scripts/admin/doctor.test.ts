import test from 'ava';
import type { Finding } from '../../../shared/doctor/finding.ts';
import { readAdmin, runAdmin } from '../../support/admin.ts';
import { useMailbox } from '../../support/mailbox.ts';
import { testWithOwnStore } from '../../support/own-stores.ts';
import { ScriptedRefusal, startScriptedVendor, unstreamedChat } from '../../support/scripted-vendor.ts';
import { useStack } from '../../support/stack.ts';

/** `admin doctor` finds what is wrong with a set-up, and says what to do. */

/** Without upstreams, whose keys a test does not have. */
const catalog = `
upstreams:
  builtin: { kind: builtin }
models:
  - { id: demo, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: builtin, model: demo-echo }] }
`;

type Env = Readonly<Record<string, string>>;

async function runDoctor(env: Env, ...args: string[]) {
  const { exitCode, stdout, stderr } = await runAdmin(env, 'doctor', ...args, '--json');
  const findings = JSON.parse(stdout) as Finding[];
  const of = (check: string): Finding | undefined => findings.find((finding) => finding.check === check);
  return { exitCode, findings, of, stderr };
}

testWithOwnStore('Redis')(
  'a Redis without an AOF, or that may evict, is a problem; one with both set right is not, nor is the rest',
  async (t) => {
    const mailbox = await useMailbox(t);
    const stack = await useStack(t, { catalog, durableRedis: true });
    await stack.redis.call('CONFIG', 'SET', 'appendonly', 'no');
    const env = { ...stack.env, SMTP_URL: mailbox.url };
    const before = await runDoctor(env);
    t.is(before.exitCode, 1);
    t.like(before.of('redis aof'), { status: 'problem', advice: 'Set appendonly yes (docs/deployment.md).' });
    await stack.redis.call('CONFIG', 'SET', 'appendonly', 'yes');
    await stack.redis.call('CONFIG', 'SET', 'maxmemory', '1gb');
    const { exitCode, findings } = await runDoctor(env);
    t.deepEqual(
      findings.filter(({ status }) => status !== 'ok'),
      [],
    );
    t.is(exitCode, 0);
    t.deepEqual(
      findings.map(({ check }) => check),
      [
        'version',
        'settings',
        'redis',
        'redis aof',
        'redis eviction',
        'redis memory',
        'clock of redis',
        'catalog',
        'routes',
        'api processes',
        'workers',
        'ledger',
        'mongodb',
        'mongodb replica set',
        'clock of mongodb',
        'bucket',
        'bucket rules',
        'mail',
      ],
    );
    await stack.redis.call('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru');
    t.like((await runDoctor(env)).of('redis eviction'), { status: 'problem' });
    const table = await runAdmin(env, 'doctor');
    t.is(table.exitCode, 1);
    t.regex(table.stdout, /^check +status +advice\n/);
  },
);

test('a test of an embedding model also finds dimensions that its server does not have', async (t) => {
  const catalog = `
upstreams:
  builtin: { kind: builtin }
models:
  - { id: vectors, type: embedding, context: 8192, dimensions: { default: 256, adjustable: false }, pricing: { in_cost_per_million: 10 }, routes: [{ upstream: builtin, model: use-lite-en-512 }] }
`;
  const stack = await useStack(t, { catalog });
  const result = await readAdmin<{ ok: boolean; reason: string }>(stack.env, 'model', 'test', 'vectors');
  t.false(result.ok);
  t.regex(result.reason, /512 dimensions instead of 256/);
});

test('without Redis, MongoDB, bucket or mail server, each is a problem, and the others are checked', async (t) => {
  const stack = await useStack(t, { catalog, workers: [] });
  const broken = {
    ...stack.env,
    REDIS_URL: 'redis://127.0.0.1:1',
    MONGODB_URL: 'mongodb://127.0.0.1:1/?replicaSet=rs0',
    S3_ENDPOINT: 'http://127.0.0.1:1',
    SMTP_URL: 'smtp://127.0.0.1:1',
  };
  const { exitCode, of } = await runDoctor(broken);
  t.is(exitCode, 1);
  for (const check of ['redis', 'mongodb', 'bucket', 'mail']) t.is(of(check)?.status, 'problem', check);
  t.like(of('catalog'), { status: 'ok' });
  const missing = await runDoctor({ ...stack.env, CATALOG: '/nowhere/catalog.yaml' });
  t.regex(missing.of('catalog')!.found, /nowhere/);
  t.is(missing.of('mongodb')?.status, 'ok');
  const settings = await runDoctor({ ...stack.env, PORT: 'many' });
  t.is(settings.exitCode, 1);
  t.regex(settings.of('settings')!.found, /PORT/);
});

test('--upstreams has a worker call each upstream with each key, and names the key that is refused', async (t) => {
  const keys: string[] = [];
  const vendor = await startScriptedVendor((_, path, { headers }) => {
    keys.push(`${path.split('/')[1]} ${headers.authorization}`);
    return headers.authorization?.endsWith('bad-key') === true
      ? new ScriptedRefusal(401, { error: { message: 'this key is not valid' } })
      : unstreamedChat;
  });
  t.teardown(() => vendor.close());
  const catalog = `
upstreams:
  first: { kind: openai, baseUrl: '${vendor.url}/first', apiKeys: [sk-good-key, sk-bad-key] }
  pictures: { kind: openai, baseUrl: '${vendor.url}/pictures', apiKeys: [sk-good-key] }
models:
  - { id: one, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: first, model: a }] }
  - { id: two, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: first, model: b }] }
  - { id: art, type: image, context: 8192, size: [1024x1024], pricing: { type: image, cost_per_image: 1.5 }, routes: [{ upstream: pictures, model: c }] }
`;
  const stack = await useStack(t, { catalog });
  const { exitCode, findings } = await runDoctor(stack.env, '--upstreams');
  t.is(exitCode, 1);
  const first = findings.filter(({ check }) => check === 'upstream first');
  t.deepEqual(first.map(({ status }) => status).toSorted(), ['ok', 'problem']);
  t.like(
    first.find(({ status }) => status === 'problem'),
    { advice: 'Replace the key, then: admin upstream reset first.' },
  );
  t.regex(
    first.find(({ status }) => status === 'problem')!.found,
    /^key [0-9a-f]{12}: one failed: the upstream responded with 401/,
  );
  t.like(
    findings.find(({ check }) => check === 'upstream pictures'),
    { status: 'warning', advice: 'admin model test art makes one image with it.' },
  );
  t.deepEqual([...new Set(keys)].toSorted(), ['first Bearer sk-bad-key', 'first Bearer sk-good-key']);
  t.false(findings.some(({ found }) => found.includes('bad-key')));
});

test('the calls of --upstreams are in the audit log, because vendors charge for them', async (t) => {
  const vendor = await startScriptedVendor(() => unstreamedChat);
  t.teardown(() => vendor.close());
  const catalog = `
upstreams:
  first: { kind: openai, baseUrl: '${vendor.url}', apiKeys: [sk-one-key, sk-other-key] }
models:
  - { id: one, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: first, model: a }] }
`;
  const stack = await useStack(t, { catalog });
  await runDoctor(stack.env, '--upstreams');
  const [event] = await readAdmin<{ action: string; after: { keys: object[] } }[]>(
    stack.env,
    'audit',
    'list',
    '--resource',
    'model:one',
  );
  t.like(event, { action: 'model.test', outcome: 'done', token: 'command', after: { upstream: 'first' } });
  t.is(event!.after.keys.length, 2);
});
