import test from 'ava';
import type { ChangeContext } from '../../../scripts/admin/command.ts';
import { openTrail } from '../../../scripts/admin/open-trail.ts';
import { queueVerbs } from '../../../scripts/admin/queue.ts';
import type { SettingsChange } from '../../../shared/accounts/account-settings.ts';
import { AccountStore } from '../../../shared/accounts/account-store.ts';
import { HotAccountStore } from '../../../shared/accounts/hot-account-store.ts';
import { LedgerStore } from '../../../shared/ledger/ledger-store.ts';
import { createLogger } from '../../../shared/platform/runtime/logger.ts';
import { redisKeys } from '../../../shared/platform/redis/redis-keys.ts';
import { readBalance } from '../../support/billing.ts';
import { changeSettings } from '../../support/change-settings.ts';
import { createJob, readJob, waitForJob } from '../../support/jobs.ts';
import { ScriptedRefusal, startScriptedVendor, unstreamedChat } from '../../support/scripted-vendor.ts';
import { useStack, type TestStack } from '../../support/stack.ts';
import { waitFor } from '../../support/wait-for.ts';

/** How operators manage the jobs of a queue. */

const catalogOf = (url: string): string => `
upstreams:
  vendor: { kind: openai, baseUrl: '${url}' }
models:
  - id: chat
    type: chat
    context: 8192
    pricing: { type: tokens, prompt: 100, completion: 200 }
    routes: [{ upstream: vendor, model: chat }]
`;

const body = { model: 'chat', messages: [{ role: 'user', content: 'hello' }], max_tokens: 10 };

async function run<T>(
  stack: TestStack,
  verb: string,
  queue: string,
  warn: (text: string) => void = () => undefined,
): Promise<T> {
  const { redis, mongo, config } = stack;
  const hotAccounts = new HotAccountStore(
    redis,
    new AccountStore(mongo.db, config),
    new LedgerStore(mongo.db),
  );
  const names = { config, env: stack.env, log: createLogger('test', 'silent'), positionals: [queue] };
  const trail = openTrail({ mongo }, () => undefined, null);
  const flags = new Set<string>();
  const context = { redis, hotAccounts, trail, warn, flags, ...names } as unknown as ChangeContext;
  return (await queueVerbs[verb]!.run(context)) as T;
}

async function listFailed(stack: TestStack): Promise<object[]> {
  const rows: object[] = [];
  for await (const row of await run<AsyncIterable<object>>(stack, 'failed', 'chat')) rows.push(row);
  return rows;
}

test('a failed job is shown with its reason and can be retried, which charges it once; if it would fail again, it is rejected', async (t) => {
  let isDown = true;
  const refusal = new ScriptedRefusal(400, { error: { message: 'not today' } });
  const vendor = await startScriptedVendor(() => (isDown ? refusal : unstreamedChat));
  t.teardown(() => vendor.close());
  const stack = await useStack(t, { catalog: catalogOf(`${vendor.url}/v1`) });
  const account = await stack.createAccount();
  const { id } = await createJob(stack, account, '/v1/chat/completions', body);
  t.is((await waitForJob(stack, account, id)).status, 'failed');
  const [failed] = await listFailed(stack);
  t.like(failed, { id, account: account.id, model: 'chat', code: 'upstream_rejected' });
  // The index of active jobs is updated shortly after the job itself.
  const status = await waitFor('no job to be active', async () => {
    const found = await run<{ chat: { active: number } }>(stack, 'status', '');
    return found.chat.active === 0 && found;
  });
  t.like(status, { chat: { failed: 1, waiting: 0, active: 0 } });

  const late = await createJob(stack, account, '/v1/chat/completions', body);
  await waitForJob(stack, account, late.id);
  // Turns the job into one that could not start in time.
  await stack.redis.hset(redisKeys.job(account.id, late.id), 'code', 'deadline_exceeded');
  await stack.redis.del(redisKeys.jobBody(account.id, late.id));

  isDown = false;
  const before = await readBalance(stack.redis, account.id);
  const why = 'it failed with deadline_exceeded, which a retry does not fix';
  const refused = [{ why, jobs: 1, example: { id: late.id, account: account.id } }];
  t.deepEqual(await run(stack, 'retry', 'chat'), { retried: 1, refused });
  t.like(await listFailed(stack), [{ id: late.id }]);
  const { items } = (await (
    await fetch(`${stack.url}/v1/jobs`, { headers: { authorization: `Bearer ${account.apiKey}` } })
  ).json()) as { items: { id: string }[] };
  const again = items.find((job) => job.id !== id && job.id !== late.id)!;
  const job = await waitForJob(stack, account, again.id);
  t.is(job.status, 'succeeded');
  t.true(job.cost_request! > 0);
  t.is((await readJob(stack, account, id)).status, 'failed');
  const after = await readBalance(stack.redis, account.id);
  t.is(Number(before.balance - after.balance) / 1e9, job.cost_request!);
  t.is(after.reserved, 0n);
  t.deepEqual(await run(stack, 'retry', 'chat'), { retried: 0, refused });
});

test('a failed job is not retried while its account may not use the model, or has an expired key', async (t) => {
  const refusal = new ScriptedRefusal(400, { error: { message: 'not today' } });
  const vendor = await startScriptedVendor(() => refusal);
  t.teardown(() => vendor.close());
  const stack = await useStack(t, { catalog: catalogOf(`${vendor.url}/v1`) });
  const account = await stack.createAccount();
  const { id } = await createJob(stack, account, '/v1/chat/completions', body);
  await waitForJob(stack, account, id);
  const refuse = async (settings: SettingsChange, why: string): Promise<void> => {
    await changeSettings(stack, account.id, settings);
    const refused = [{ why, jobs: 1, example: { id, account: account.id } }];
    t.deepEqual(await run(stack, 'retry', 'chat'), { retried: 0, refused });
    t.is((await readBalance(stack.redis, account.id)).reserved, 0n);
  };
  await refuse({ models: ['other'] }, 'its account may not use its model');
  await refuse({ models: null, ownerModels: ['other'] }, 'its account may not use its model');
  const expiresAt = new Date(Date.now() - 1_000);
  await refuse({ ownerModels: null, expiresAt }, 'the key of its account has expired');
  const budget = { amountNano: 0n, period: 'daily' } as const;
  await refuse({ expiresAt: null, budget }, 'the budget of its account is used up');
  await changeSettings(stack, account.id, { budget: null, models: ['chat'], ownerModels: ['chat'] });
  t.deepEqual(await run(stack, 'retry', 'chat'), { retried: 1, refused: [] });
});

test('draining a queue cancels and refunds all waiting jobs and asks waiting callers to try again', async (t) => {
  const stack = await useStack(t, { catalog: catalogOf('http://127.0.0.1:9/v1'), workers: [] });
  const account = await stack.createAccount();
  const jobs = await Promise.all(
    Array.from({ length: 5 }, () => createJob(stack, account, '/v1/chat/completions', body)),
  );
  const waiting = stack.post('/v1/chat/completions', account.apiKey, body);
  const countWaiting = async (): Promise<number> =>
    (await run<{ chat: { waiting: number } }>(stack, 'status', '')).chat.waiting;
  await waitFor('all requests to wait', async () => (await countWaiting()) === 6);
  const warnings: string[] = [];
  await run(stack, 'status', '', (text) => void warnings.push(text));
  // The catalog has no models of the other queues.
  t.is(warnings.length, 1);
  t.regex(warnings[0]!, /^No worker takes chat requests\. Callers get a 503 after 15 s/);
  t.deepEqual(await run(stack, 'drain', 'chat'), { queue: 'chat', jobs: 5, requests: 1 });
  t.is((await waiting).status, 503);
  for (const { id } of jobs) t.is((await readJob(stack, account, id)).status, 'cancelled');
  t.is(await countWaiting(), 0);
  const { balance, reserved } = await readBalance(stack.redis, account.id);
  t.is(balance, 100_000_000_000n);
  t.is(reserved, 0n);
});
