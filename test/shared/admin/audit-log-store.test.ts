import test from 'ava';
import { AuditLogStore, type AuditFilter } from '../../../shared/admin/audit-log-store.ts';
import { countExamined } from '../../support/examined-documents.ts';
import { useMongo } from '../../support/use-mongo.ts';

const connect = useMongo(test);

test('a page of the log reads its own events, by each filter, and has a time limit', async (t) => {
  const mongo = connect(t);
  const store = new AuditLogStore(mongo.db);
  await store.createIndexes();
  const actor = { osUser: null, requestId: null, address: null };
  const event = { ...actor, action: 'queue.drain', before: null } as const;
  for (let i = 0; i < 5; i++) {
    await store.start({ ...event, token: 'billing', resourceType: 'account', resourceId: 'anna' });
    await store.start({ ...event, token: 'support', resourceType: 'code', resourceId: 'one' });
  }
  const others = Array.from({ length: 100 }, (_, i) => i);
  for (const i of others) {
    await store.start({ ...event, token: 'billing', resourceType: 'code', resourceId: `code-${i}` });
    await store.start({ ...event, token: 'support', resourceType: 'account', resourceId: `account-${i}` });
  }
  // A change of a user that concerns an account is among the changes of both.
  const concerning = { resourceType: 'user', resourceId: 'her user', accountId: 'eve' } as const;
  for (let i = 0; i < 3; i++) {
    await store.start({ ...event, token: 'others', ...concerning });
    await store.start({ ...event, token: 'others', resourceType: 'account', resourceId: 'eve' });
  }
  const filters: AuditFilter[] = [
    {},
    { token: 'billing' },
    { resourceType: 'account' },
    { token: 'billing', resourceType: 'account' },
    { token: 'billing', resourceType: 'account', resourceId: 'anna' },
    { token: 'billing', resourceType: 'account', since: new Date(0) },
  ];
  for (const filter of filters) {
    const page = await countExamined(mongo, async () => {
      t.is((await store.list(filter, { after: null, limit: 5 })).length, 5);
    });
    t.true(page.documents <= 6 && page.keys <= 6, `${JSON.stringify(filter)}: ${JSON.stringify(page)}`);
    t.true(page.maxTimesMs.every((ms) => ms === 5_000));
  }
  const ofAnyType = await countExamined(mongo, async () => {
    t.is((await store.list({ resourceId: 'anna' }, { after: null, limit: 6 })).length, 5);
  });
  t.true(ofAnyType.documents <= 6, JSON.stringify(ofAnyType));
  const ofAccount = { resourceType: 'account', resourceId: 'eve' } as const;
  const both = await countExamined(mongo, async () => {
    const first = await store.list(ofAccount, { after: null, limit: 4 });
    t.deepEqual(
      first.map(({ resourceType }) => resourceType),
      ['account', 'user', 'account', 'user'],
    );
    const rest = await store.list(ofAccount, { after: first[3]!._id, limit: 4 });
    t.deepEqual(
      rest.map(({ resourceType }) => resourceType),
      ['account', 'user'],
    );
  });
  t.true(both.documents <= 10 && both.keys <= 12, JSON.stringify(both));
});
