import test from 'ava';
import { callAdmin, codeOf, testAdminToken, type AdminResponse } from '../../support/admin-api.ts';
import { startStack, type TestStack } from '../../support/stack.ts';

/** What operators set for accounts, by the admin API. */

let stack: TestStack;

test.before(async () => {
  stack = await startStack({ env: { ADMIN_TOKEN: testAdminToken } });
});
test.after.always(() => stack?.close());

type Account = Readonly<Record<string, unknown>> & { readonly id: string; readonly api_key: string };

const call = <T = Account>(method: string, path: string, body?: unknown): Promise<AdminResponse<T>> =>
  callAdmin<T>(stack.url, testAdminToken, method, path, body);

async function ask(apiKey: string, model = 'demo-echo'): Promise<string | number> {
  const body = { model, messages: [{ role: 'user', content: 'hi' }], max_tokens: 5 };
  const response = await stack.post('/v1/chat/completions', apiKey, body);
  const { error } = (await response.json()) as { readonly error?: { readonly code: string } };
  return error?.code ?? response.status;
}

const settings = {
  name: 'Shop',
  email: 'shop@example.com',
  note: 'pays late',
  budget: { amount: 500.5, period: 'weekly' },
  models: ['demo-echo'],
  addresses: ['10.0.0.0/8', '127.0.0.1', '::1'],
  expires_at: '2100-01-01T00:00:00.000Z',
  tokens_per_minute: 100_000,
  low_balance: 5,
};
const shown = { ...settings, budget: { ...settings.budget, spent: 0, reserved: 0 } };
const cleared = Object.fromEntries(Object.keys(settings).map((name) => [name, null]));

test('an account is created with all settings, and each is cleared with null', async (t) => {
  const { status, body } = await call('POST', '/accounts', { ...settings, balance: 10 });
  t.is(status, 201);
  t.like(body, shown);
  t.is(await ask(body.api_key), 200);
  const image = await stack.post('/v1/images/generations', body.api_key, {
    model: 'demo-svg-image',
    prompt: 'a red fox',
  });
  t.like(await image.json(), { error: { code: 'model_not_allowed' } });
  const changed = await call('PATCH', `/accounts/${body.id}`, cleared);
  t.like(changed, { status: 200, body: { ...cleared, owner_budget: null, owner_models: null } });
  // What was spent meanwhile counts.
  t.like(await call('PATCH', `/accounts/${body.id}`, settings), { status: 200, body: settings });
});

test('a changed setting holds for the next request, and the audit log has it before and after', async (t) => {
  const { body } = await call('POST', '/accounts', { balance: 10 });
  t.is(await ask(body.api_key), 200);
  const budget = { amount: 0.000000001, period: 'monthly' };
  await call('PATCH', `/accounts/${body.id}`, { budget });
  t.is(await ask(body.api_key), 'budget_exceeded');
  await call('PATCH', `/accounts/${body.id}`, { budget: null, expires_at: '2020-01-01' });
  t.is(await ask(body.api_key), 'key_expired');
  const { body: audit } = await call<{ data: { action: string; before: unknown; after: unknown }[] }>(
    'GET',
    `/audit?resource=account:${body.id}`,
  );
  const changes = audit.data.filter(({ action }) => action === 'account.update');
  t.like(changes[0], { before: { budget }, after: { budget: null, expires_at: '2020-01-01T00:00:00.000Z' } });
  t.like(changes[1], { before: { budget: null }, after: { budget } });
});

test('a wrong setting is a 422 that names the field', async (t) => {
  const { body } = await call('POST', '/accounts', {});
  const wrong: readonly [body: object, field: string][] = [
    [{ models: ['no-such-model'] }, 'models'],
    [{ addresses: ['10.0.0.1/8'] }, 'addresses'],
    [{ budget: { amount: 5 } }, 'budget'],
    [{ budget: { amount: 1e-10, period: 'daily' } }, 'budget'],
    [{ expires_at: 'soon' }, 'expires_at'],
    [{ tokens_per_minute: 0 }, 'tokens_per_minute'],
    [{ email: 'nobody' }, 'email'],
  ];
  for (const [change, field] of wrong) {
    const response = await call<{ detail: { loc: string[] }[] }>('PATCH', `/accounts/${body.id}`, change);
    t.is(codeOf(response), 'validation_failed', JSON.stringify(change));
    t.is(response.body.detail[0]!.loc[1], field);
  }
  t.like((await call('GET', `/accounts/${body.id}`)).body, cleared);
});
