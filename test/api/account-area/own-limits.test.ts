import test from 'ava';
import type { ApiAccount } from '../../../api/contract/web-accounts.ts';
import type { SettingsChange } from '../../../shared/accounts/account-settings.ts';
import { changeSettings } from '../../support/change-settings.ts';
import type { TestAccount, TestStack } from '../../support/stack.ts';
import { waitFor } from '../../support/wait-for.ts';
import { callWeb, createSeparateUser, linkAccount, startWebStack } from '../../support/web-accounts.ts';
import type { WebClient } from '../../support/web-client.ts';

/** What the owner of an account limits, beside what its operator does. */

let stack: TestStack;

test.before(async () => {
  stack = await startWebStack();
});
test.after.always(() => stack.close());

interface Owned {
  readonly account: TestAccount;
  readonly client: WebClient;
  readonly path: string;
}

async function createOwned(): Promise<Owned> {
  const { client } = await createSeparateUser(stack);
  const account = await stack.createAccount();
  const { id } = await linkAccount(client, account);
  return { account, client, path: `/api-accounts/${id}` };
}

async function changeAsOperator({ account }: Owned, change: SettingsChange): Promise<void> {
  await changeSettings(stack, account.id, change);
}

const patch = ({ client, path }: Owned, body: object) => callWeb<ApiAccount>(client, 'PATCH', path, body);

async function ask({ account }: Owned, model: string): Promise<string | number> {
  const body = { model, messages: [{ role: 'user', content: 'hi' }], max_tokens: 5 };
  const response = await stack.post('/v1/chat/completions', account.apiKey, body);
  const { error } = (await response.json()) as { readonly error?: { readonly code: string } };
  return error?.code ?? response.status;
}

test('an owner sets a budget, models and a threshold, sees them, and clears each with null', async (t) => {
  const owned = await createOwned();
  const change = { budget: { amount: 12.5, period: 'daily' }, models: ['demo-echo'], low_balance: '7' };
  const { status, body } = await patch(owned, change);
  t.is(status, 200);
  t.like(body, {
    label: 'Основной',
    budget: { amount: '12.5', period: 'daily', spent: '0', reserved: '0' },
    models: ['demo-echo'],
    low_balance: '7',
    limits: { budget: null, models: null },
  });
  t.like((await patch(owned, { budget: null })).body, {
    budget: null,
    models: ['demo-echo'],
    low_balance: '7',
  });
  const cleared = await patch(owned, { models: null, low_balance: null, label: 'Shop' });
  t.like(cleared.body, { label: 'Shop', budget: null, models: null, low_balance: null });
});

test('what an owner sets applies beside what the operator set, and never allows more', async (t) => {
  const owned = await createOwned();
  await changeAsOperator(owned, { models: ['demo-echo'], budget: { amountNano: 0n, period: 'monthly' } });
  const { body } = await patch(owned, {
    models: ['demo-svg-image', 'demo-echo'],
    budget: { amount: 1_000, period: 'daily' },
  });
  t.like(body.limits, { models: ['demo-echo'], budget: { amount: '0', period: 'monthly' } });
  t.is(await ask(owned, 'demo-echo'), 'budget_exceeded');
  await changeAsOperator(owned, { budget: null });
  t.is(await ask(owned, 'demo-echo'), 200);
  await patch(owned, { models: ['demo-svg-image'] });
  t.is(await ask(owned, 'demo-echo'), 'model_not_allowed');
});

test('wrong settings are a 422 that names the field, and nothing is changed', async (t) => {
  const owned = await createOwned();
  const wrong: readonly [body: object, field: string][] = [
    [{}, ''],
    [{ budget: { amount: 5, period: 'yearly' } }, 'budget.period'],
    [{ budget: { amount: -1, period: 'daily' } }, 'budget.amount'],
    [{ budget: { amount: '1.0000000001', period: 'daily' } }, 'budget.amount'],
    [{ models: ['demo-echo', 'no-such-model'] }, 'models.1'],
    [{ models: [] }, 'models'],
    [{ low_balance: 'much' }, 'low_balance'],
    [{ label: 'x', models: ['no-such-model'] }, 'models.0'],
  ];
  for (const [body, field] of wrong) {
    const response = await callWeb(owned.client, 'PATCH', owned.path, body);
    t.is(response.status, 422, JSON.stringify(body));
    if (field !== '')
      t.true((response.body.error.param ?? '').startsWith(field), JSON.stringify(response.body));
  }
  const { body } = await callWeb<ApiAccount>(owned.client, 'GET', owned.path);
  t.like(body, { label: 'Основной', budget: null, models: null, low_balance: null });
});

test('a key links no account from an address that may not use it, or after its expiry', async (t) => {
  const { client } = await createSeparateUser(stack);
  const account = await stack.createAccount();
  const link = () => callWeb(client, 'POST', '/api-accounts/link', { api_key: account.apiKey });
  const refuse = async (settings: SettingsChange, code: string): Promise<void> => {
    await changeSettings(stack, account.id, settings);
    const { status, body } = await waitFor('the change to hold', async () => {
      const response = await link();
      return response.body.error?.code === code && response;
    });
    t.is(status, 403);
    t.is(body.error.code, code);
    t.deepEqual((await callWeb<ApiAccount[]>(client, 'GET', '/api-accounts')).body, []);
  };
  await refuse({ addresses: ['192.0.2.1'] }, 'address_not_allowed');
  await refuse({ addresses: null, expiresAt: new Date(Date.now() - 1_000) }, 'key_expired');
  await changeSettings(stack, account.id, { expiresAt: null });
  await waitFor('the account to be linked', async () => (await link()).status === 201);
});

test('the list of addresses applies to the key, and not to a user who looks at the account', async (t) => {
  const owned = await createOwned();
  await changeAsOperator(owned, { addresses: ['192.0.2.1'] });
  t.is(await ask(owned, 'demo-echo'), 'address_not_allowed');
  for (const path of ['', '/stats', '/request-logs'])
    t.is((await callWeb(owned.client, 'GET', `${owned.path}${path}`)).status, 200, path);
  const { body } = await callWeb<ApiAccount>(owned.client, 'GET', owned.path);
  t.deepEqual(body.limits?.addresses, ['192.0.2.1']);
});
