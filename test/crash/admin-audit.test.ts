import test from 'ava';
import { findStablePort } from '../support/stable-port.ts';
import { callAdmin, testAdminToken, createToken, type ListedPage } from '../support/admin-api.ts';
import { useStack } from '../support/stack.ts';
import { testOnOneRedis } from '../support/own-stores.ts';
import { waitFor } from '../support/wait-for.ts';
import { startRole } from '../support/worker-process.ts';

/** The log of operators' changes is complete although an api process is killed in the middle of a change. */

interface AuditRow {
  readonly action: string;
  readonly outcome: string;
  readonly token: string;
  readonly ended_at: string | null;
  readonly before: { readonly balance?: number };
  readonly request_id: string | null;
}

testOnOneRedis()(
  'a change whose api is killed stays in the log as started, and the credit is made once when it is repeated',
  async (t) => {
    const stack = await useStack(t, { env: { ADMIN_TOKEN: testAdminToken } });
    const { id } = await stack.createAccount({ balance: '1' });
    const token = await createToken(stack, 'billing-system', 'billing');
    const port = await findStablePort();
    const victim = await startRole(t, 'api', { ...stack.env, PORT: String(port) });
    const url = `http://127.0.0.1:${port}`;
    const credit = (one: string) =>
      callAdmin<{ amount: number }>(
        one,
        token,
        'POST',
        `/accounts/${id}/credits`,
        { amount: 5 },
        {
          'idempotency-key': 'invoice-1',
        },
      );
    const readLog = async (): Promise<readonly AuditRow[]> =>
      (await callAdmin<ListedPage<AuditRow>>(stack.url, token, 'GET', `/audit?resource=account:${id}`)).body
        .data;
    t.is((await callAdmin(url, token, 'GET', `/accounts/${id}`)).status, 200);

    // Holds back the script that credits, but not the reads before it, unless a heartbeat of the process came in between:
    // reads wait behind a write on their connection, and the credit is rejected before it is begun.
    let lost: Promise<number | null> | undefined;
    let rows: readonly AuditRow[];
    for (;;) {
      await stack.redis.call('CLIENT', 'PAUSE', '60000', 'WRITE');
      let isRejected = false;
      lost = credit(url).then(
        ({ status }) => {
          isRejected = true;
          return status;
        },
        () => null,
      );
      rows = await waitFor('the change to be recorded, or rejected', async () => {
        const found = await readLog();
        return (found.length > 0 || isRejected) && found;
      });
      if (rows.length > 0) break;
      t.is(await lost, 503);
      await stack.redis.call('CLIENT', 'UNPAUSE');
      await waitFor(
        'the api to reach Redis again',
        async () => (await callAdmin(url, token, 'GET', `/accounts/${id}`)).status === 200,
      );
    }
    const [started] = rows;
    t.like(started, {
      action: 'account.credit',
      outcome: 'started',
      token: 'billing-system',
      ended_at: null,
    });
    t.is(started!.before.balance, 1);
    await victim.kill();
    t.is(await lost, null);
    await stack.redis.call('CLIENT', 'UNPAUSE');

    t.like(await credit(stack.url), { status: 200, body: { amount: 5 } });
    t.like(await credit(stack.url), { status: 200, body: { amount: 5 } });
    t.is((await stack.readAccount(id)).balanceNano, 6_000_000_000n);
    const after = await readLog();
    t.deepEqual(
      after.map(({ outcome }) => outcome),
      ['done', 'started'],
      'what is repeated is recorded by itself, and a replay changes nothing',
    );
    t.true(after.every(({ request_id }) => request_id !== null));
  },
);

test('an api that is killed at random under many changes leaves an entry for every change that was made', async (t) => {
  const stack = await useStack(t, { env: { ADMIN_TOKEN: testAdminToken } });
  const accounts = await Promise.all(Array.from({ length: 5 }, () => stack.createAccount({ balance: '0' })));
  const port = await findStablePort();
  const url = `http://127.0.0.1:${port}`;
  const sent = new Map<string, string[]>(accounts.map(({ id }) => [id, []]));
  for (let round = 0; round < 2; round++) {
    const victim = await startRole(t, 'api', { ...stack.env, PORT: String(port) });
    let answered = 0;
    const calls = accounts.flatMap(({ id }) =>
      Array.from({ length: 20 }, async (_, i) => {
        const key = `${round}-${i}`;
        sent.get(id)!.push(key);
        await callAdmin(
          url,
          testAdminToken,
          'POST',
          `/accounts/${id}/credits`,
          { amount: 1 },
          {
            'idempotency-key': key,
          },
        ).catch(() => null);
        answered += 1;
      }),
    );
    await waitFor('some calls to be answered', () => answered >= 10);
    await victim.kill();
    await Promise.all(calls);
  }
  for (const { id } of accounts) {
    const made = (await stack.readAccount(id)).balanceNano / 1_000_000_000n;
    const rows = await stack.mongo.db.collection('admin_audit').countDocuments({ resourceId: id });
    t.true(BigInt(rows) >= made, `${rows} entries for ${made} credits`);
    // Repeating all of them makes exactly those that are missing.
    for (const key of sent.get(id)!)
      await callAdmin(
        stack.url,
        testAdminToken,
        'POST',
        `/accounts/${id}/credits`,
        { amount: 1 },
        {
          'idempotency-key': key,
        },
      );
    t.is((await stack.readAccount(id)).balanceNano, BigInt(sent.get(id)!.length) * 1_000_000_000n);
  }
});
