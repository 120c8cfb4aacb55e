import test from 'ava';
import type { UserBalance } from '../../api/contract/users.ts';
import type { SettingsChange } from '../../shared/accounts/account-settings.ts';
import { changeSettings } from '../support/change-settings.ts';
import { callApi, type ErrorBody } from '../support/call-api.ts';
import { waitForNoReservation } from '../support/observe.ts';
import { startStack, type TestAccount, type TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** What restricts an account, as callers see it. */

const catalog = `
upstreams:
  builtin: { kind: builtin }
models:
  - { id: chat, type: chat, context: 8192, pricing: { prompt: 1000000, completion: 1000000 }, routes: [{ upstream: builtin, model: demo-echo }] }
  - { id: other, aliases: [second], type: chat, context: 8192, pricing: { prompt: 1000000, completion: 1000000 }, routes: [{ upstream: builtin, model: demo-echo }] }
  - { id: free, type: chat, context: 8192, pricing: { prompt: 0, completion: 0 }, routes: [{ upstream: builtin, model: demo-echo }] }
`;

let stack: TestStack;

test.before(async () => {
  stack = await startStack({ catalog, env: { TRUST_PROXY: 'on' } });
});
test.after.always(() => stack.close());

async function createAccount(settings: SettingsChange, balance = '1000'): Promise<TestAccount> {
  const account = await stack.createAccount({ balance });
  await change(account, settings);
  return account;
}

async function change({ id }: TestAccount, settings: SettingsChange): Promise<void> {
  await changeSettings(stack, id, settings);
}

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: ErrorBody & { readonly usage: { readonly cost_request: number } };
}

async function ask(
  { apiKey }: TestAccount,
  more: object = {},
  headers: Record<string, string> = {},
): Promise<Answer> {
  const body = { model: 'chat', messages: [{ role: 'user', content: 'hi' }], max_tokens: 1, ...more };
  const response = await stack.post('/v1/chat/completions', apiKey, body, headers);
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as Answer['body'],
  };
}

test('over its budget, a request is a 402 that says which budget, how much is left and when it resets', async (t) => {
  const account = await createAccount({ budget: { amountNano: 20_000_000_000n, period: 'monthly' } });
  const first = await ask(account);
  t.is(first.status, 200);
  t.is(first.headers.get('x-budget-limit'), '20');
  const long = [{ role: 'user', content: 'one two three four five six seven eight nine ten eleven twelve' }];
  const rejected = await ask(account, { messages: long });
  t.is(rejected.status, 402);
  t.is(rejected.body.error.code, 'budget_exceeded');
  const left = String(20 - first.body.usage.cost_request);
  t.true(
    rejected.body.error.message.includes(`The monthly budget of this account, 20 RUB, has ${left} RUB left`),
  );
  t.is(rejected.headers.get('x-budget-remaining'), left);
  const reset = rejected.headers.get('x-budget-reset')!;
  t.regex(reset, /^\d{4}-\d\d-01T00:00:00Z$/);
  const waitSeconds = (Date.parse(reset) - Date.now()) / 1_000;
  t.true(Math.abs(Number(rejected.headers.get('retry-after')) - waitSeconds) < 120);
  t.truthy(rejected.headers.get('x-ratelimit-remaining-requests'));
  t.is((await ask(account, { model: 'free' })).status, 200);
});

test('a large body of an account whose budget is used up is rejected before it is tokenized', async (t) => {
  const account = await createAccount({ budget: { amountNano: 0n, period: 'daily' } });
  const content = 'x '.repeat(100_000);
  const { status, body } = await ask(account, { messages: [{ role: 'user', content }] });
  t.is(status, 402);
  t.is(body.error.code, 'budget_exceeded');
});

test('a model that the account may not use is a 403, also by another name, and the others work', async (t) => {
  const account = await createAccount({ models: ['chat'] });
  t.is((await ask(account)).status, 200);
  for (const model of ['other', 'second']) {
    const { status, body } = await ask(account, { model });
    t.is(status, 403);
    t.is(body.error.code, 'model_not_allowed');
    t.regex(body.error.message, /\bother\b/);
  }
});

/** Operations of a key: with admission, with its own check, and with none. */
const paths = [
  '/users/profile',
  '/users/stats',
  '/users/request_logs',
  '/jobs',
  '/files',
  '/batches',
] as const;

async function callAll({ apiKey }: TestAccount, address: string): Promise<(string | number)[]> {
  const forwarded = { 'x-forwarded-for': address };
  const responses = await Promise.all([
    ...paths.map((path) =>
      fetch(`${stack.url}/v1${path}`, { headers: { authorization: `Bearer ${apiKey}`, ...forwarded } }),
    ),
    stack.post(
      '/v1/chat/completions',
      apiKey,
      { model: 'free', messages: [{ role: 'user', content: 'hi' }] },
      forwarded,
    ),
    stack.post(
      '/v1/chat/completions',
      apiKey,
      { model: 'free', messages: [{ role: 'user', content: 'x '.repeat(100_000) }], max_tokens: 1 },
      forwarded,
    ),
  ]);
  return await Promise.all(
    responses.map(async (response) => {
      const body = (await response.json()) as Partial<ErrorBody>;
      return body.error?.code ?? response.status;
    }),
  );
}

const everywhere = (result: string | number): (string | number)[] => [...paths, '', ''].map(() => result);

test('from an address that is not allowed, every operation of the key is a 403; mapped addresses are IPv4', async (t) => {
  const account = await createAccount({ addresses: ['198.51.100.0/24'] });
  t.deepEqual(await callAll(account, '203.0.113.5'), everywhere('address_not_allowed'));
  const allowed = await callAll(account, '::ffff:198.51.100.77');
  t.deepEqual(allowed.slice(0, -1), everywhere(200).slice(0, -1));
  t.is(allowed.at(-1), 'context_length_exceeded');
});

test('after a key has expired, every operation of it is a 403', async (t) => {
  const account = await createAccount({ expiresAt: new Date(Date.now() - 1_000) });
  t.deepEqual(await callAll(account, '203.0.113.5'), everywhere('key_expired'));
});

test('a changed list of addresses holds within a second for operations without admission, too', async (t) => {
  const account = await createAccount({ addresses: ['198.51.100.0/24'] });
  const list = async (): Promise<number> => {
    const headers = { authorization: `Bearer ${account.apiKey}`, 'x-forwarded-for': '198.51.100.1' };
    return (await fetch(`${stack.url}/v1/jobs`, { headers })).status;
  };
  t.is(await list(), 200);
  await change(account, { addresses: ['192.0.2.0/24'] });
  await waitFor('the change to hold', async () => (await list()) === 403);
  t.is((await ask(account, {}, { 'x-forwarded-for': '198.51.100.1' })).status, 403);
  await change(account, { addresses: null });
  await waitFor('the change to hold', async () => (await list()) === 200);
});

test('over the limit of tokens per minute, a request is a 429 with OpenAI’s headers', async (t) => {
  const account = await createAccount({ tokensPerMinute: 12 });
  const first = await ask(account);
  t.is(first.status, 200);
  t.is(first.headers.get('x-ratelimit-limit-tokens'), '12');
  t.true(Number(first.headers.get('x-ratelimit-remaining-tokens')) < 12);
  await ask(account);
  const { status, headers, body } = await ask(account);
  t.is(status, 429);
  t.is(body.error.code, 'rate_limit_exceeded');
  t.regex(body.error.message, /12 tokens per minute/);
  t.is(headers.get('x-ratelimit-remaining-tokens'), '0');
  t.regex(headers.get('x-ratelimit-reset-tokens')!, /^(\d+m)?\d+s$/);
  t.true(Number(headers.get('retry-after')) >= 1);
});

test('50 parallel requests spend no more than the budget, to the nano', async (t) => {
  const account = await createAccount({ budget: { amountNano: 100_000_000_000n, period: 'daily' } });
  const answers = await Promise.all(Array.from({ length: 50 }, () => ask(account)));
  const paid = answers.filter(({ status }) => status === 200);
  t.true(paid.length > 0 && paid.length < 50);
  t.true(answers.every(({ status, body }) => status === 200 || body.error.code === 'budget_exceeded'));
  const spent = paid.reduce((sum, { body }) => sum + BigInt(Math.round(body.usage.cost_request * 1e9)), 0n);
  await waitForNoReservation(stack, account.id);
  const { budget } = (await stack.readAccount(account.id)).restrictions;
  t.deepEqual([budget!.spentNano, budget!.reservedNano], [spent, 0n]);
  t.true(spent <= 100_000_000_000n);
  // What is left pays for no further request.
  t.true(100_000_000_000n - spent < 14_000_000_000n);
});

test('the profile shows what restricts the account, and not who it belongs to', async (t) => {
  const account = await createAccount({
    name: 'Shop',
    email: 'shop@example.com',
    note: 'pays late',
    budget: { amountNano: 5_000_000_000n, period: 'weekly' },
    ownerModels: ['chat'],
    addresses: ['127.0.0.1'],
    expiresAt: new Date('2100-01-01T00:00:00Z'),
    tokensPerMinute: 1_000,
    lowBalanceNano: 500_000_000n,
  });
  const { body } = await callApi<UserBalance>(stack.url, account.apiKey, 'GET', '/users/profile');
  t.like(body, {
    budget: { amount: 5, period: 'weekly', spent: 0, reserved: 0 },
    owner_models: ['chat'],
    addresses: ['127.0.0.1'],
    expires_at: '2100-01-01T00:00:00.000Z',
    tokens_per_minute: 1_000,
    low_balance: 0.5,
  });
  const text = JSON.stringify(body);
  for (const secret of ['Shop', 'shop@example.com', 'pays late', '"models"', '"owner_budget"'])
    t.false(text.includes(secret), secret);
});
