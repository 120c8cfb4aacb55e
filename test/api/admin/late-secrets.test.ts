import { randomUUID } from 'node:crypto';
import test from 'ava';
import { AccountStore, type AccountDocument } from '../../../shared/accounts/account-store.ts';
import type { AuditDocument } from '../../../shared/admin/audit-log-store.ts';
import { callAdmin, codeOf, testAdminToken, type ListedPage } from '../../support/admin-api.ts';
import { callApi } from '../../support/call-api.ts';
import { startStack, type TestStack } from '../../support/stack.ts';
import { waitFor } from '../../support/wait-for.ts';

/** A secret whose caller had its 503 before MongoDB responded does not exist: nobody would have it. */

let stack: TestStack;

test.before(async () => {
  stack = await startStack({
    workers: [],
    holdsMongo: true,
    api: { databaseWaitMs: 500 },
    env: { ADMIN_TOKEN: testAdminToken },
  });
});
test.after.always(() => stack?.close());

const call = <T>(method: string, path: string, body?: unknown, headers = {}) =>
  callAdmin<T>(stack.url, testAdminToken, method, path, body, headers);

/** A busy machine may exceed the time limit; then the call is repeated, as a caller would do. */
const callUntilServed = <T>(method: string, path: string, body?: unknown, headers = {}) =>
  waitFor('a response', async () => {
    const response = await call<T>(method, path, body, headers);
    return response.status !== 503 && response;
  });

const readEvents = (action: AuditDocument['action']) =>
  stack.mongo.db.collection<AuditDocument>('admin_audit').find({ action }).sort({ _id: -1 }).toArray();

/**
 * Makes a call while MongoDB holds back the replies to all commands that contain a text, then releases them.
 * @returns once the change has been recorded as failed
 */
async function callTooLate(
  action: AuditDocument['action'],
  held: string,
  [path, body]: readonly [path: string, body: object],
): Promise<number> {
  const events = (await readEvents(action)).length;
  stack.mongoProxy!.hold(held);
  const { status } = await call('POST', path, body);
  stack.mongoProxy!.release();
  await waitFor('the change to fail', async () => {
    const all = await readEvents(action);
    return all.length > events && all[0]!.outcome === 'failed';
  });
  return status;
}

/** What the log has when a change begins, what the change itself writes, and how its end is recorded. */
const moments = (start: string, write: string) => [start, write, 'done'];

for (const held of moments('account.rotate-key', 'keyMasked'))
  test.serial(
    `a key whose replacement took too long at "${held}" goes on working, and can be shown`,
    async (t) => {
      const { id, apiKey } = await stack.createAccount();
      t.is(await callTooLate('account.rotate-key', held, [`/accounts/${id}/rotate-key`, {}]), 503);
      await waitFor(
        'the key to work',
        async () => (await callApi(stack.url, apiKey, 'GET', '/users/profile')).status === 200,
      );
      t.is(await new AccountStore(stack.mongo.db, stack.config).revealKey(id), apiKey);
    },
  );

for (const held of moments('account.create', 'keyMasked'))
  test.serial(`an account whose creation took too long at "${held}" is worthless`, async (t) => {
    const name = randomUUID();
    const fields = { name, balance: 100, free_requests: 2 };
    t.is(await callTooLate('account.create', held, ['/accounts', fields]), 503);
    const accounts = stack.mongo.db.collection<AccountDocument>('accounts');
    for (const { _id: id, keyHash } of await accounts.find({ name }).toArray()) {
      t.like(await stack.readAccount(id), { banned: true, balanceNano: 0n, freeRequests: 0 });
      t.is(await stack.mongo.db.collection<{ _id: string }>('key_secrets').findOne({ _id: keyHash }), null);
    }
  });

test.serial('a creation with a key is made however late, and its repetition returns it', async (t) => {
  const once = { 'idempotency-key': randomUUID() };
  stack.mongoProxy!.hold('keyMasked');
  t.is((await call('POST', '/accounts', { balance: 100 }, once)).status, 503);
  stack.mongoProxy!.release();
  const { status, body } = await callUntilServed<{ id: string; api_key: string }>(
    'POST',
    '/accounts',
    { balance: 100 },
    once,
  );
  t.is(status, 201);
  t.is((await callApi(stack.url, body.api_key, 'GET', '/users/profile')).status, 200);
  t.like(await stack.readAccount(body.id), { banned: false, balanceNano: 100_000_000_000n });
});

for (const held of moments('code.create', 'hint'))
  test.serial(`codes whose creation took too long at "${held}" are worth nothing`, async (t) => {
    t.is(await callTooLate('code.create', held, ['/codes', { balance: 50, count: 3 }]), 503);
    t.deepEqual((await callUntilServed<ListedPage<object>>('GET', '/codes?status=unused')).body.data, []);
  });

for (const held of moments('token.create', 'secretHash'))
  test.serial(
    `a token whose creation took too long at "${held}" does not exist, and its name is free`,
    async (t) => {
      const token = { name: `t-${randomUUID()}`, scope: 'all' };
      t.is(await callTooLate('token.create', held, ['/tokens', token]), 503);
      const { data } = (await callUntilServed<ListedPage<{ name: string }>>('GET', '/tokens?limit=100')).body;
      t.false(data.some(({ name }) => name === token.name));
      t.is((await callUntilServed('POST', '/tokens', token)).status, 201);
      t.is(codeOf(await callUntilServed('POST', '/tokens', token)), 'validation_failed');
    },
  );
