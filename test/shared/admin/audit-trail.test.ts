import test from 'ava';
import { AuditTrail } from '../../../shared/admin/audit-trail.ts';
import type { AuditLogStore } from '../../../shared/admin/audit-log-store.ts';
import { AppError } from '../../../shared/contract/errors.ts';

const actor = { token: 'billing', osUser: null, requestId: 'a request', address: '192.0.2.1' };

/** Collects what is written. @param failing the method that fails */
function createTrail(failing: 'start' | 'finish' | null = null, reason: string | null = null) {
  const written: object[] = [];
  const unrecorded: unknown[] = [];
  const write = (name: 'start' | 'finish', fields: object): string => {
    if (failing === name) throw new AppError('service_unavailable');
    written.push({ name, ...fields });
    return 'an id';
  };
  const store = {
    start: async (event: object) => write('start', event),
    finish: async (id: string, end: object) => write('finish', { id, ...end }),
  } as unknown as AuditLogStore;
  const trail = new AuditTrail({ store, actor, reason, onUnrecorded: (error) => unrecorded.push(error) });
  return { trail, written, unrecorded };
}

const change = { action: 'account.ban', id: 'x', before: { banned: false } } as const;

test('a change is recorded before it is made, and its end with what it became', async (t) => {
  const { trail, written } = createTrail();
  const result = await trail.run(
    change,
    async () => {
      t.is(written.length, 1, 'it is in the log already');
      return 7;
    },
    (value) => ({ value }),
  );
  t.is(result, 7);
  t.like(written[0], {
    name: 'start',
    resourceType: 'account',
    resourceId: 'x',
    ...actor,
    before: { banned: false },
  });
  t.like(written[1], { name: 'finish', outcome: 'done', after: { value: 7 }, error: null });
});

test('the reason is recorded before the change is made, without what was pasted into it by mistake', async (t) => {
  const { trail, written } = createTrail(null, ` lost mga-${'x'.repeat(43)} `);
  await trail.run(change, async () => t.like(written[0], { reason: 'lost mga-…' }));
  const { trail: other, written: others } = createTrail();
  await other.run(change, async () => t.like(others[0], { reason: null }));
});

test('a change that cannot be recorded is not made', async (t) => {
  const { trail } = createTrail('start');
  let isMade = false;
  const making = trail.run(change, async () => {
    isMade = true;
  });
  await t.throwsAsync(making, { instanceOf: AppError, code: 'service_unavailable' });
  t.false(isMade);
});

test('a rejected change has failed, and one with another error stays started', async (t) => {
  const { trail, written } = createTrail();
  const rejection = new AppError('validation_failed', { message: 'no' });
  await t.throwsAsync(
    trail.run(change, () => Promise.reject(rejection)),
    { is: rejection },
  );
  t.like(written[1], { name: 'finish', outcome: 'failed', error: 'no' });
  await t.throwsAsync(trail.run(change, () => Promise.reject(new AppError('service_unavailable'))));
  t.is(written.length, 3);
  t.like(written[2], { name: 'start' });
  const left = new AppError('job_cancelled');
  await t.throwsAsync(
    trail.run(change, () => Promise.reject(left)),
    { is: left },
  );
  t.is(written.length, 4, 'what the caller asked for may be under way');
});

test('if only the end cannot be recorded, the change has succeeded, and that is reported', async (t) => {
  const { trail, unrecorded } = createTrail('finish');
  t.is(await trail.run(change, async () => 'made'), 'made');
  t.is(unrecorded.length, 1);
});
