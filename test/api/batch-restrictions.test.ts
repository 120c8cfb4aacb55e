import test from 'ava';
import type { SettingsChange } from '../../shared/accounts/account-settings.ts';
import type { Batch } from '../../shared/contract/batches.ts';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import { changeSettings } from '../support/change-settings.ts';
import { callApi } from '../support/call-api.ts';
import { toNano, waitForNoReservation } from '../support/observe.ts';
import { startStack, type TestAccount, type TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** What restricts an account also restricts the lines of its batches and its jobs. */

/** A picture costs 1 rouble, whatever is asked. */
const catalog = `
upstreams:
  builtin: { kind: builtin }
models:
  - { id: chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: builtin, model: demo-echo }] }
  - { id: other, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: builtin, model: demo-echo }] }
  - { id: picture, type: image, context: 8192, size: [256x256], max_image_count: 4, pricing: { type: image, cost_per_image: 1 }, routes: [{ upstream: builtin, model: demo-svg-image }] }
`;

let stack: TestStack;

test.before(async () => {
  stack = await startStack({ catalog });
});
test.after.always(() => stack.close());

async function change(accountId: string, settings: SettingsChange): Promise<void> {
  await changeSettings(stack, accountId, settings);
}

async function createAccount(settings: SettingsChange): Promise<TestAccount> {
  const account = await stack.createAccount();
  await change(account.id, settings);
  return account;
}

async function runBatch(
  { apiKey }: TestAccount,
  endpoint: string,
  bodies: readonly object[],
  more: object = {},
) {
  const requests = bodies.map((body, i) => ({ custom_id: `line-${i}`, body }));
  const request = { endpoint, completion_window: '24h', requests, ...more };
  const { status, body: created } = await callApi<Batch>(stack.url, apiKey, 'POST', '/batches', request);
  if (status !== 200) throw new Error(JSON.stringify(created));
  return await waitFor('the batch to end', async () => {
    const { body } = await callApi<Batch>(stack.url, apiKey, 'GET', `/batches/${created.id}`);
    return ['completed', 'failed', 'cancelled', 'expired'].includes(body.status) ? body : null;
  });
}

async function readErrorCodes({ apiKey }: TestAccount, { error_file_id: fileId }: Batch): Promise<string[]> {
  const headers = { authorization: `Bearer ${apiKey}` };
  const response = await fetch(`${stack.url}/v1/files/${fileId}/content`, { headers });
  const lines = (await response.text()).trim().split('\n');
  return lines.map((line) => (JSON.parse(line) as { error: { code: string } }).error.code);
}

const chat = (model: string): object => ({
  model,
  messages: [{ role: 'user', content: 'hi' }],
  max_tokens: 5,
});
const picture = { model: 'picture', prompt: 'a lighthouse', size: '256x256' };
const images = '/v1/images/generations';

test.serial(
  'a batch goes as far as the budget does, to the nano, and its other lines are errors',
  async (t) => {
    const account = await createAccount({ budget: { amountNano: 3_500_000_000n, period: 'monthly' } });
    const lines = Array.from({ length: 8 }, () => picture);
    const ended = await runBatch(account, images, lines, { max_cost: 50 });
    t.like(ended, { status: 'completed', cost: 3, request_counts: { total: 8, completed: 3, failed: 5 } });
    t.deepEqual(
      await readErrorCodes(account, ended),
      Array.from({ length: 5 }, () => 'budget_exceeded'),
    );
    const { budget } = (await stack.readAccount(account.id)).restrictions;
    t.like(budget, { spentNano: 3_000_000_000n, reservedNano: 0n });
    // The sums are the same if they are computed from the ledger.
    await stack.redis.del(redisKeys.account(account.id));
    t.like((await stack.readAccount(account.id)).restrictions.budget, {
      spentNano: 3_000_000_000n,
      reservedNano: 0n,
    });
  },
);

test.serial('a batch whose estimate exceeds the budget is rejected, and reserves nothing', async (t) => {
  const account = await createAccount({ budget: { amountNano: 1_500_000_000n, period: 'daily' } });
  await t.throwsAsync(runBatch(account, images, [picture, picture]), { message: /budget_exceeded/ });
  t.like((await stack.readAccount(account.id)).restrictions.budget, { spentNano: 0n, reservedNano: 0n });
});

test.serial('lines whose model the account may not use are errors, and the others run', async (t) => {
  const account = await createAccount({ models: ['chat'] });
  const ended = await runBatch(
    account,
    '/v1/chat/completions',
    ['other', 'chat', 'other', 'chat', 'chat'].map(chat),
  );
  t.like(ended, { status: 'completed', request_counts: { total: 5, completed: 3, failed: 2 } });
  t.deepEqual(await readErrorCodes(account, ended), ['model_not_allowed', 'model_not_allowed']);
});

test.serial('the lines of an account whose key has expired are errors', async (t) => {
  const account = await createAccount({ tokensPerMinute: 1_000_000 });
  await stack.stopWorkers();
  const created = await callApi<Batch>(stack.url, account.apiKey, 'POST', '/batches', {
    endpoint: '/v1/chat/completions',
    completion_window: '24h',
    requests: [{ custom_id: 'a', body: chat('chat') }],
  });
  t.is(created.status, 200);
  await change(account.id, { expiresAt: new Date(Date.now() - 1) });
  await stack.startWorker();
  await waitFor('the batch to end', async () => {
    const [status, why] = await stack.redis.hmget(redisKeys.batch(account.id, created.body.id), 'st', 'why');
    return status === 'completed' && why === 'key_expired';
  });
  t.is((await stack.readAccount(account.id)).reservedNano, 0n);
});

test.serial(
  'a job reserves from the budget until it ends, also if its account is missing from Redis meanwhile',
  async (t) => {
    const account = await createAccount({ budget: { amountNano: 2_000_000_000n, period: 'weekly' } });
    await stack.stopWorkers();
    const headers = { prefer: 'respond-async' };
    const placed = await stack.post(images, account.apiKey, picture, headers);
    t.is(placed.status, 202);
    await placed.json();
    const read = async () => (await stack.readAccount(account.id)).restrictions.budget;
    t.like(await read(), { spentNano: 0n, reservedNano: 1_000_000_000n });
    await stack.redis.del(redisKeys.account(account.id));
    t.like(await read(), { spentNano: 0n, reservedNano: 1_000_000_000n });
    const second = await stack.post(images, account.apiKey, { ...picture, n: 2 }, headers);
    t.is(second.status, 402);
    await second.json();
    await stack.startWorker();
    await waitFor('the job to be settled', async () => (await read())!.reservedNano === 0n);
    await waitForNoReservation(stack, account.id);
    t.is((await read())!.spentNano, toNano(1));
  },
);

test.serial(
  'over its tokens per minute, an account creates batches, because their lines count none',
  async (t) => {
    const account = await createAccount({ tokensPerMinute: 1 });
    t.is((await stack.post('/v1/chat/completions', account.apiKey, chat('chat'))).status, 200);
    t.is((await stack.post('/v1/chat/completions', account.apiKey, chat('chat'))).status, 429);
    t.like(await runBatch(account, '/v1/chat/completions', [chat('chat')]), { status: 'completed' });
  },
);
