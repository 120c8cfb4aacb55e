import test from 'ava';
import { AppError } from '../../../shared/contract/errors.ts';
import type { RouteGrant } from '../../../shared/routing/grant-script.ts';
import { enterAgain } from '../../../workers/routing/further-slot.ts';
import type { RouteGate } from '../../../workers/routing/route-gate.ts';

const enter = (reason: Error): ReturnType<typeof enterAgain> => {
  const gate = { enter: async () => Promise.reject(reason) } as unknown as RouteGate;
  const patience = { keyMs: 1_000, breakerMs: 1_000 };
  const grant = { way: {}, accountId: 'ann' } as unknown as RouteGrant;
  return enterAgain(gate, { patience, deadlineAtMs: Infinity }, grant, new AbortController().signal);
};

test('where no further slot can be had, also because Redis is away, the call that has one goes on alone', async (t) => {
  t.is(await enter(new AppError('service_unavailable')), null);
  t.is(await enter(new AppError('deadline_exceeded')), null);
});

test('a fault of ours is not taken for a lack of slots', async (t) => {
  await t.throwsAsync(enter(new TypeError('oops')), { instanceOf: TypeError });
});
