import test from 'ava';
import * as support from '../../support/admin.ts';
import { startStack, type TestStack } from '../../support/stack.ts';

/** `admin account update`, which says who an account belongs to and limits what it may do. */

let stack: TestStack;

test.before(async () => {
  stack = await startStack();
});
test.after.always(() => stack.close());

type Profile = Readonly<Record<string, unknown>>;

async function runAdmin(...args: string[]) {
  const { exitCode, stdout, stderr } = await support.runAdmin(stack.env, ...args, '--json');
  return { exitCode, stderr, answer: (stdout === '' ? null : JSON.parse(stdout)) as Profile | null };
}

const nothing = {
  name: null,
  email: null,
  note: null,
  budget: null,
  owner_budget: null,
  models: null,
  owner_models: null,
  addresses: null,
  expires_at: null,
  tokens_per_minute: null,
  low_balance: null,
};

test('all settings are set at once, shown, and cleared with none', async (t) => {
  const { id, apiKey } = await stack.createAccount();
  t.like((await runAdmin('account', 'show', id)).answer, nothing);
  const options = {
    name: 'Shop',
    email: 'Shop@example.com',
    note: 'pays late',
    budget: '500',
    'budget-period': 'monthly',
    models: 'demo-echo, demo-svg-image',
    addresses: '10.0.0.0/8,127.0.0.1',
    expires: '2100-01-01',
    tpm: '100000',
    'low-balance': '50',
  };
  const toArguments = (name: string, value: string): string[] => [`--${name}`, value];
  const given = Object.entries(options).flatMap(([name, value]) => toArguments(name, value));
  const { exitCode, answer } = await runAdmin('account', 'update', apiKey, ...given);
  t.is(exitCode, 0);
  const now = new Date();
  const next = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1));
  t.like(answer, {
    id,
    name: 'Shop',
    email: 'shop@example.com',
    note: 'pays late',
    budget: { amount: 500, period: 'monthly', spent: 0, reserved: 0, resets_at: next.toISOString() },
    models: ['demo-echo', 'demo-svg-image'],
    addresses: ['10.0.0.0/8', '127.0.0.1'],
    expires_at: '2100-01-01T00:00:00.000Z',
    tokens_per_minute: 100_000,
    low_balance: 50,
  });
  t.deepEqual((await runAdmin('account', 'show', id)).answer, answer);
  const names = Object.keys(options).filter((name) => name !== 'budget-period');
  const cleared = await runAdmin(
    'account',
    'update',
    id,
    ...names.flatMap((name) => toArguments(name, 'none')),
  );
  t.like(cleared.answer, nothing);
});

test('of a budget, the amount or the period can be changed alone once there is one', async (t) => {
  const { id } = await stack.createAccount();
  const set = async (...options: string[]) => await runAdmin('account', 'update', id, ...options);
  const { exitCode, stderr } = await set('--budget', '5');
  t.is(exitCode, 2);
  t.regex(stderr, /--budget-period is required/);
  t.is((await set('--budget-period', 'daily')).exitCode, 2);
  await set('--budget', '5', '--budget-period', 'daily');
  t.like((await set('--budget', '7.5')).answer, { budget: { amount: 7.5, period: 'daily' } });
  t.like((await set('--budget-period', 'weekly')).answer, { budget: { amount: 7.5, period: 'weekly' } });
});

test('a wrong setting is refused with a reason that names it, and nothing is changed', async (t) => {
  const { id } = await stack.createAccount();
  const wrong: readonly [options: readonly string[], reason: RegExp][] = [
    [['--models', 'demo-echo,no-such-model'], /models\.1: "no-such-model" is not a model/],
    [['--addresses', '10.0.0.1/8'], /addresses\.0: "10\.0\.0\.1\/8"/],
    [['--expires', 'soon'], /expires_at/],
    [['--tpm', 'many'], /tokens_per_minute/],
    [['--email', 'nobody'], /email/],
    [['--budget', '5', '--budget-period', 'yearly'], /budget\.period/],
    [['--name', 'x', '--low-balance', '1e99'], /low_balance/],
  ];
  for (const [options, reason] of wrong) {
    const { exitCode, stderr } = await runAdmin('account', 'update', id, ...options);
    t.is(exitCode, 1, options.join(' '));
    t.regex(stderr, reason);
  }
  t.is((await runAdmin('account', 'update', id)).exitCode, 2);
  t.is((await runAdmin('account', 'update', 'nobody', '--name', 'x')).exitCode, 1);
  t.like((await runAdmin('account', 'show', id)).answer, nothing);
});
