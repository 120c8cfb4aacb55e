import test from 'ava';
import { WorkerRegistryStore } from '../../../shared/work/queue/worker-registry-store.ts';
import { redisKeys } from '../../../shared/platform/redis/redis-keys.ts';
import * as support from '../../support/admin.ts';
import type { AdminResult } from '../../support/admin.ts';
import { callApi } from '../../support/call-api.ts';
import { startStack, type TestStack } from '../../support/stack.ts';

/** The admin commands, run as in a shell. */

let stack: TestStack;

test.before(async () => {
  stack = await startStack();
});
test.after.always(() => stack.close());

interface Outcome<T> {
  readonly exitCode: number;
  readonly answer: T;
  readonly stderr: string;
}

const toOutcome = <T>({ exitCode, stdout, stderr }: AdminResult): Outcome<T> => ({
  exitCode,
  answer: (stdout === '' ? null : JSON.parse(stdout)) as T,
  stderr,
});

const runAdmin = async <T = Record<string, unknown>>(...args: string[]): Promise<Outcome<T>> =>
  toOutcome(await support.runAdmin(stack.env, ...args, '--json'));

test('a command prints its result to stdout and exits with 0, or prints the error to stderr and exits with 1 or 2', async (t) => {
  const { id } = await stack.createAccount();
  const run = async (...args: string[]) =>
    toOutcome<{ id: string } | null>(await support.spawnAdmin(stack.env, ...args, '--json'));
  t.like(await run('account', 'show', id), { exitCode: 0, answer: { id }, stderr: '' });
  const unknown = await run('account', 'show', 'nobody');
  t.like(unknown, { exitCode: 1, answer: null });
  t.regex(unknown.stderr, /nobody/);
  const wrong = await run('account', 'shw', id);
  t.like(wrong, { exitCode: 2, answer: null });
  t.regex(wrong.stderr, /There is no "account shw"\.\nUsage: /);
});

interface CodeRow {
  readonly code: string;
  readonly status: string;
  readonly [field: string]: unknown;
}

const redeem = (apiKey: string, code: string) =>
  callApi(stack.url, apiKey, 'POST', '/users/redeem', { code });

test('codes are listed with their value and status; --unused lists only codes that can still be redeemed', async (t) => {
  const { id, apiKey } = await stack.createAccount();
  const { answer } = await runAdmin<{ codes: string[] }>(
    'code',
    'create',
    '--balance',
    '12.5',
    '--free-requests',
    '3',
    '--count',
    '4',
  );
  const [unused, used, revoked, expired] = answer.codes as [string, string, string, string];
  t.is((await redeem(apiKey, used)).status, 200);
  t.like(await runAdmin('code', 'revoke', revoked.toLowerCase()), {
    exitCode: 0,
    answer: { code: `…${revoked.slice(-4)}`, status: 'revoked' },
  });
  t.is((await redeem(apiKey, revoked)).status, 422);
  await stack.mongo.db
    .collection('refill_codes')
    .updateOne({ hint: `…${expired.slice(-4)}` }, { $set: { expiresAt: new Date(0) } });

  const { answer: rows } = await runAdmin<CodeRow[]>('code', 'list');
  const find = (code: string) => rows.find((row) => row.code === `…${code.slice(-4)}`);
  t.deepEqual(Object.keys(rows[0]!), [
    'code',
    'balance',
    'free_requests',
    'created_at',
    'expires_at',
    'status',
    'redeemed_by',
    'redeemed_at',
    'batch',
  ]);
  const untouched = { balance: 12.5, free_requests: 3, redeemed_by: null, redeemed_at: null };
  t.like(find(unused), { ...untouched, status: 'unused', expires_at: null });
  t.like(find(revoked), { ...untouched, status: 'revoked' });
  t.like(find(expired), { ...untouched, status: 'expired', expires_at: new Date(0).toISOString() });
  t.like(find(used), { status: 'redeemed', redeemed_by: id });
  t.regex(String(find(used)?.['redeemed_at']), /Z$/);

  const { answer: redeemable } = await runAdmin<CodeRow[]>('code', 'list', '--unused');
  t.true(redeemable.some((row) => row.code === `…${unused.slice(-4)}`));
  t.true(redeemable.every((row) => row.status === 'unused'));
});

test('a used or unknown code cannot be revoked, and revoking a code again changes nothing', async (t) => {
  const { apiKey } = await stack.createAccount();
  const { answer } = await runAdmin<{ codes: string[] }>('code', 'create', '--balance', '1', '--count', '2');
  const [used, unused] = answer.codes as [string, string];
  await redeem(apiKey, used);
  const refused = await runAdmin('code', 'revoke', used);
  t.is(refused.exitCode, 1);
  t.regex(refused.stderr, /redeemed/);
  t.is((await runAdmin('code', 'revoke', 'ABCD-EFGH')).exitCode, 1);
  const first = await runAdmin('code', 'revoke', unused);
  t.deepEqual((await runAdmin('code', 'revoke', unused)).answer, first.answer);
  t.is((await runAdmin('code', 'revoke')).exitCode, 2);
  t.is((await runAdmin('code', 'list', '--used')).exitCode, 2);
});

test('if no account matches the given name, the error says so, whatever the name is', async (t) => {
  await stack.createAccount();
  for (const name of ['x'.repeat(100_000), '__proto__', '{"$gt":""}']) {
    const { exitCode, stderr } = await runAdmin('account', 'show', name);
    t.is(exitCode, 1);
    t.true(stderr.startsWith(`No account "${name.slice(0, 50)}`), 'the message repeats the name');
    t.true(
      stderr.includes('account list') && stderr.length < 300,
      'the message stays short and suggests what to do',
    );
  }
  const key = `mg-${'k'.repeat(43)}`;
  const { exitCode, stderr } = await runAdmin('account', 'show', key);
  t.is(exitCode, 1);
  t.true(stderr.startsWith('No account has this API key.') && !stderr.includes(key), stderr);
});

test('a ban shows its reason; an unban clears the reason and the count of wrong codes that led to the ban', async (t) => {
  const { id, apiKey } = await stack.createAccount();
  for (let i = 0; i < 10; i++) await redeem(apiKey, `2222-2222-2222-2222-222${'23456789AB'[i]}`);
  t.like((await runAdmin('account', 'show', id)).answer, {
    banned: true,
    ban_reason: 'guessed refill codes',
  });
  t.like(await runAdmin('account', 'unban', apiKey), {
    exitCode: 0,
    answer: { banned: false, ban_reason: null },
  });
  // Nine wrong codes are allowed again, because the earlier ones no longer count.
  for (let i = 0; i < 9; i++)
    t.is((await redeem(apiKey, `2222-2222-2222-2222-222${'23456789AB'[i]}`)).status, 422);
  await runAdmin('account', 'ban', id, '--reason', 'unpaid bills');
  t.is((await redeem(apiKey, '2222-2222-2222-2222-2222')).status, 403);
  const { answer: rows } = await runAdmin<{ id: string; ban_reason: string | null }[]>('account', 'list');
  t.is(rows.find((row) => row.id === id)?.ban_reason, 'unpaid bills');
});

const accountMeaning = '<account> is an account id, an API key, or the number that the account area shows.';

test.serial('a usage error is explained, then only the usage of its verb or resource is shown', async (t) => {
  const mistakes = [
    {
      args: ['account', 'create', '--balanc', '5'],
      message: `Unknown option "--balanc", in "account create".`,
    },
    { args: ['account', 'show'], message: '"account show" takes one argument, <account>; none was given.' },
    { args: ['account', 'sho', 'x'], message: 'There is no "account sho".' },
    { args: ['account'], message: 'Specify what to do with "account".' },
  ];
  for (const { args, message } of mistakes) {
    const { exitCode, stderr } = await runAdmin(...args);
    const [first, usage, ...verbs] = stderr.trimEnd().split('\n');
    t.deepEqual([exitCode, first], [2, message]);
    t.regex(usage!, /^Usage: /);
    const isKnown = ['create', 'show'].includes(args[1] ?? '');
    if (args[1] !== 'create') t.is(verbs.pop(), accountMeaning);
    t.true(isKnown ? verbs.length === 2 : verbs.length > 10, stderr);
    // Each verb is followed by a line that describes it.
    for (const [i, line] of verbs.entries())
      t.true(line.startsWith(i % 2 === 0 ? `  account ${isKnown ? args[1] : ''}` : '      '), line);
  }
  const { stderr } = await runAdmin('acount', 'list');
  t.is(
    stderr.trimEnd().split('\n').at(-1),
    '<resource> is one of: account, audit, batch, code, doctor, find, job, ledger, model, queue, request, spend, token, upstream, user.',
  );
});

interface ServedRow {
  readonly id?: string;
  readonly model?: string;
  readonly active?: boolean;
  readonly not_served?: string | null;
  readonly not_called?: string | null;
}

test.serial('lists show why a model is not served and why a route is not called', async (t) => {
  const model = async (id: string) =>
    (await runAdmin<ServedRow[]>('model', 'list')).answer.find((row) => row.id === id);
  const route = async (id: string) =>
    (await runAdmin<ServedRow[]>('upstream', 'list')).answer.find((row) => row.model === id);
  t.like(await model('demo-svg-image'), { active: true, not_served: null });
  t.like(await route('demo-svg-image'), { not_called: null });

  t.like(await model('claude-sonnet-4-5'), {
    active: false,
    not_served: 'ANTHROPIC_API_KEY is not set in this shell',
  });
  t.like(await route('claude-sonnet-4-5'), { not_called: 'ANTHROPIC_API_KEY is not set in this shell' });

  await runAdmin('model', 'disable', 'demo-svg-image');
  const advice = 'disabled by an operator: model enable demo-svg-image';
  t.like(await model('demo-svg-image'), { active: false, not_served: advice });
  t.like(await route('demo-svg-image'), { not_called: `the model is ${advice}` });
  await runAdmin('model', 'enable', 'demo-svg-image');

  const health = redisKeys.routeHealth('demo-svg-image builtin demo-svg-image');
  await stack.redis.hset(health, 'until', String(Date.now() + 600_000));
  const open = /breaker is open for \d+ s after failed calls$/;
  t.regex((await model('demo-svg-image'))?.not_served ?? '', open);
  t.regex((await route('demo-svg-image'))?.not_called ?? '', open);
  await stack.redis.del(health);
});

test.serial(
  'the list of upstreams says once why a key is not called, and how many calls wait for a slot',
  async (t) => {
    const row = async () =>
      (await runAdmin<(ServedRow & { waiting_for_slot: number })[]>('upstream', 'list')).answer.find(
        ({ model }) => model === 'demo-svg-image',
      )!;
    t.like(await row(), { not_called: null, waiting_for_slot: 0 });
    const cooldowns = redisKeys.keysOnCooldown('builtin');
    const refused = `${Date.now() + 600_000} refused with 403`;
    await stack.redis.hset(cooldowns, 'some none demo-svg-image builtin demo-svg-image', refused);
    t.regex(
      (await row()).not_called!,
      /^for the accounts whose calls were refused: its key is on cooldown for \d+ s: refused with 403$/,
    );
    await stack.redis.hset(cooldowns, 'none', refused);
    t.regex((await row()).not_called!, /^its key is on cooldown for \d+ s: refused with 403$/);
    t.false('set_aside' in (await row()));
    await stack.redis.del(cooldowns);

    const held = new Map([['demo-svg-image', { interactive: { running: 1, waiting: 7, oldestMs: 5_000 } }]]);
    const load = { active: 8, waitingInputs: 0, bulkRuns: 0, faults: 0, isTaking: true };
    const rest = { concurrency: 64, endedPerMinute: 0, version: '1', held };
    const registry = new WorkerRegistryStore(stack.redis);
    await registry.beat('image', 'worker-of-this-test', { ...load, ...rest });
    t.is((await row()).waiting_for_slot, 7);
    await registry.leave('image', 'worker-of-this-test');
  },
);

for (const words of [
  ['account', 'constructor'],
  ['account', 'toString'],
  ['constructor', 'list'],
  ['__proto__', 'constructor'],
]) {
  test(`"${words.join(' ')}", which every object inherits, is an unknown command and does not crash the CLI`, async (t) => {
    const { exitCode, stderr } = await runAdmin(...words);
    t.is(exitCode, 2);
    t.true(stderr.startsWith(`There is no "${words.join(' ')}".\nUsage: `), stderr);
  });
}

test('account limits are set one by one and apply immediately; invalid or unspecified limits do not change', async (t) => {
  const { answer: created } = await runAdmin<{ id: string }>('account', 'create', '--rpm', '60');
  t.like(created, { requests_per_minute: 60, max_queued_jobs: 10_000, weight: 1 });
  const { id } = created;
  const set = async (...options: string[]) => await runAdmin('account', 'limit', id, ...options);
  t.like((await set('--max-queued-jobs', '0')).answer, {
    requests_per_minute: 60,
    max_queued_jobs: 0,
    weight: 1,
  });
  const limits = { requests_per_minute: 7, max_queued_jobs: 0, weight: 100 };
  t.like((await set('--weight', '100', '--rpm', '7')).answer, limits);
  for (const wrong of [[], ['--weight', '101']]) {
    t.is((await set(...wrong)).exitCode, 2, wrong.join(' '));
  }
  t.like(await stack.readAccount(id), { requestsPerMinute: 7, maxQueuedJobs: 0, weight: 100 });
});

test("an account's webhook secret stays the same until it is rotated", async (t) => {
  const { id } = await stack.createAccount();
  const show = async (...options: string[]) =>
    (await runAdmin<{ secret: string }>('account', 'webhook-secret', id, ...options)).answer.secret;
  const first = await show();
  t.regex(first, /^whsec_[A-Za-z0-9+/]{43}=$/);
  t.is(await show(), first);
  const second = await show('--rotate');
  t.not(second, first);
  t.is(await show(), second);
  const { answer: events } = await runAdmin<{ action: string; after: object }[]>(
    'audit',
    'list',
    '--resource',
    `account:${id}`,
  );
  const changes = events.filter(({ action }) => action === 'account.webhook-secret');
  t.deepEqual(
    changes.map(({ after }) => after),
    [{ shown: true }, { rotated: true }, { shown: true }, { created: true, shown: true }],
    'showing it is recorded, too',
  );
});

test('after support replaces a lost key, the new key works and the old one does not', async (t) => {
  const { id, apiKey } = await stack.createAccount();
  t.is((await callApi(stack.url, apiKey, 'GET', '/users/profile')).status, 200);
  const { answer } = await runAdmin<{ id: string; api_key: string }>('account', 'rotate-key', id);
  t.is(answer.id, id);
  t.is((await callApi(stack.url, apiKey, 'GET', '/users/profile')).status, 401);
  t.is((await callApi(stack.url, answer.api_key, 'GET', '/users/profile')).status, 200);
  t.is((await runAdmin('account', 'rotate-key', 'nobody')).exitCode, 1);
});

test('a debit takes no more than is there, and says how much it took', async (t) => {
  const { answer: created } = await runAdmin<{ id: string }>('account', 'create', '--balance', '100');
  const { answer, exitCode, stderr } = await runAdmin('account', 'credit', created.id, '--balance', '-200');
  t.is(exitCode, 0);
  t.like(answer, { balance: 0, taken: 100 });
  t.regex(stderr, /Subtracted 100 of 200 roubles/);
  t.like((await runAdmin('account', 'credit', created.id, '--balance', '5')).answer, {
    balance: 5,
    taken: undefined,
  });
});
