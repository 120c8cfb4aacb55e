import test from 'ava';
import { startStack, type TestStack } from '../support/stack.ts';

/** The account profile that a key holder can read. */

let stack: TestStack;

test.before(async () => {
  stack = await startStack();
});
test.after.always(() => stack.close());

interface Profile {
  readonly id: string;
  readonly user_type: string;
  readonly last_used_at?: string;
  readonly balance: number;
  readonly total_balance_added: number;
  readonly free_requests: number;
  readonly request_count_last_hour: number;
  readonly total_cost_request_last_hour: number;
  readonly average_rpm: number;
  readonly requests_per_minute: number;
}

async function readProfile(apiKey: string): Promise<Profile> {
  const response = await fetch(`${stack.url}/v1/users/profile`, {
    headers: { authorization: `Bearer ${apiKey}` },
  });
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`);
  return (await response.json()) as Profile;
}

/** All fields of UserBalance in the specification, which are all optional there. */
const knownFields =
  `id user_type last_used_at balance total_balance_added free_requests request_count_last_hour
  total_cost_request_last_hour average_rpm requests_per_minute`.split(/\s+/);

test('a new account shows its balance, free requests and rate limit', async (t) => {
  const { id, apiKey } = await stack.createAccount({ balance: '12.345678901', freeRequests: 4, rpm: 77 });
  const profile = await readProfile(apiKey);
  t.like(profile, {
    id,
    user_type: 'default',
    balance: 12.345678901,
    total_balance_added: 12.345678901,
    free_requests: 4,
    request_count_last_hour: 0,
    total_cost_request_last_hour: 0,
    average_rpm: 0,
    requests_per_minute: 77,
  });
  t.deepEqual(
    Object.keys(profile).filter((name) => !knownFields.includes(name)),
    [],
  );
});

test('a paid request lowers the balance by the reported cost, but not the total ever added', async (t) => {
  const { apiKey } = await stack.createAccount({ balance: '1' });
  const body = { model: 'use-lite-en-512', input: 'cat' };
  const response = await stack.post('/v1/embeddings', apiKey, body);
  const { usage } = (await response.json()) as { usage: { cost_request: number; prompt_tokens: number } };
  t.is(usage.prompt_tokens, 1);
  t.is(usage.cost_request, 0.00001);
  const profile = await readProfile(apiKey);
  t.is(profile.balance, 0.99999);
  t.is(profile.request_count_last_hour, 1);
  t.is(profile.total_cost_request_last_hour, 0.00001);
  t.is(profile.average_rpm, 0.0167);
  t.is(profile.total_balance_added, 1);
  const usedAt = Date.parse(profile.last_used_at!);
  t.true(Math.abs(Date.now() - usedAt) < 10_000);
  t.regex(profile.last_used_at!, /Z$/);
});

test('a free request lowers only the number of free requests', async (t) => {
  const { apiKey } = await stack.createAccount({ balance: '1', freeRequests: 2 });
  const messages = [{ role: 'user', content: 'hi' }];
  await (await stack.post('/v1/chat/completions', apiKey, { model: 'demo-echo', messages })).text();
  t.like(await readProfile(apiKey), { balance: 1, free_requests: 1 });
});

test('reading the profile is not charged and does not count against the rate limit', async (t) => {
  const { apiKey } = await stack.createAccount({ balance: '1', rpm: 1 });
  for (let i = 0; i < 5; i++) await readProfile(apiKey);
  const response = await stack.post('/v1/embeddings', apiKey, { model: 'use-lite-en-512', input: 'cat' });
  t.is(response.status, 200);
});

test('a key shows only its own account', async (t) => {
  const [ann, bob] = await Promise.all([
    stack.createAccount({ balance: '1' }),
    stack.createAccount({ balance: '2' }),
  ]);
  t.like(await readProfile(ann.apiKey), { id: ann.id, balance: 1 });
  t.like(await readProfile(bob.apiKey), { id: bob.id, balance: 2 });
});

test('without a valid key, the profile is a 401', async (t) => {
  for (const headers of [{}, { authorization: 'Bearer mg-none' }]) {
    const response = await fetch(`${stack.url}/v1/users/profile`, { headers });
    t.is(response.status, 401);
    t.like(await response.json(), { error: { code: 'invalid_api_key' } });
  }
});
