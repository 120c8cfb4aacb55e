import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { ensureDemoAccount } from '../../../scripts/start/demo-account.ts';
import { formatWelcome } from '../../../scripts/start/welcome.ts';
import { runAdmin } from '../../support/admin.ts';
import { callApi } from '../../support/call-api.ts';
import { startStack, type TestStack } from '../../support/stack.ts';
import { makeFolder } from './fake-parts.ts';

let stack: TestStack;

test.before(async () => {
  stack = await startStack({ workers: [] });
});
test.after.always(() => stack.close());
// All these tests use one database, and a database has only one demo account.
test.afterEach.always(() => stack.mongo.db.collection('accounts').deleteMany({}));

const start = (dataDir: string, env: Record<string, string> = {}) =>
  ensureDemoAccount(dataDir, { PATH: process.env['PATH'], ...stack.env, ...env });
const countAccounts = () => stack.mongo.db.collection('accounts').countDocuments();
const welcome = {
  baseUrl: 'http://127.0.0.1:1/v1',
  models: [],
  dataDir: '.data',
  hasOutbox: true,
  hasPages: true,
  hasAdminToken: false,
  tookMs: 1,
};

test.serial(
  'the demo account is created once, and is found again even if records of the first start are lost',
  async (t) => {
    const folder = makeFolder(t);
    const first = await start(folder);
    t.like(first, { banReason: null, missingAccount: null });
    t.is((await callApi(stack.url, first.apiKey!, 'GET', '/users/profile')).status, 200);
    t.deepEqual(await start(folder), first);
    rmSync(join(folder, 'secrets.json'));
    t.deepEqual(await start(folder), first);
    t.is(await countAccounts(), 1);
  },
);

test.serial(
  'after the key of the demo account is replaced over HTTP, the account is found and the new key is shown',
  async (t) => {
    const folder = makeFolder(t);
    const first = await start(folder);
    const { body } = await callApi<{ new_api_key: string }>(
      stack.url,
      first.apiKey!,
      'PUT',
      '/users/regenerate_api_key',
    );
    t.deepEqual(await start(folder), { ...first, apiKey: body.new_api_key });
    // The examples read the key from this file.
    const { demoApiKey } = JSON.parse(readFileSync(join(folder, 'secrets.json'), 'utf8')) as {
      demoApiKey: string;
    };
    t.is(demoApiKey, body.new_api_key);
    t.is(await countAccounts(), 1);
  },
);

test.serial(
  'if the key was replaced and the new one cannot be shown, no second account is created, and the output explains how to get another key',
  async (t) => {
    for (const env of [{ REVEAL: 'off' }, { MASTER_KEY: 'another-master-key-0123456789abcdef01234' }]) {
      const folder = makeFolder(t);
      const { id } = await start(folder);
      t.is((await runAdmin(stack.env, 'account', 'rotate-key', id)).exitCode, 0);
      const demo = await start(folder, env);
      t.deepEqual(demo, { id, apiKey: null, banReason: null, missingAccount: null });
      const text = formatWelcome({ ...welcome, demo });
      t.true(text.includes(`npm run -s admin -- account rotate-key ${id}`), text);
      t.is(await countAccounts(), 1);
      await stack.mongo.db.collection('accounts').deleteMany({});
    }
  },
);

test.serial('a banned demo account is shown as banned', async (t) => {
  const folder = makeFolder(t);
  const first = await start(folder);
  await runAdmin(stack.env, 'account', 'ban', first.id, '--reason', 'played too long');
  const demo = await start(folder);
  t.deepEqual(demo, { ...first, banReason: 'played too long' });
  t.regex(
    formatWelcome({ ...welcome, demo }),
    /It is banned \(played too long\)\. Lift the ban: .* account unban /,
  );
  t.is(await countAccounts(), 1);
});

test.serial('if the account is not in the database, another is created and reported', async (t) => {
  const folder = makeFolder(t);
  const first = await start(folder);
  await stack.mongo.db.collection('accounts').deleteMany({});
  const second = await start(folder);
  t.not(second.id, first.id);
  t.is(second.missingAccount, first.id);
  t.true(
    formatWelcome({ ...welcome, demo: second }).includes(
      `the previous one (${first.id}) is not in this database`,
    ),
  );
  t.deepEqual(await start(folder), { ...second, missingAccount: null });
});

test.serial("a customer's account is never mistaken for the demo account", async (t) => {
  await stack.createAccount();
  const folder = makeFolder(t);
  await start(folder);
  t.is(await countAccounts(), 2);
});
