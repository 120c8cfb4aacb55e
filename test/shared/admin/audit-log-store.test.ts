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
    t.deepEqual(page.maxTimesMs, [5_000]);
  }
  const ofAnyType = await countExamined(mongo, async () => {
    t.is((await store.list({ resourceId: 'anna' }, { after: null, limit: 6 })).length, 5);
  });
  t.true(ofAnyType.documents <= 6, JSON.stringify(ofAnyType));
});
