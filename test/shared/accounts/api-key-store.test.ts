import test from 'ava';
import type { AccountStore } from '../../../shared/accounts/account-store.ts';
import { ApiKeyStore } from '../../../shared/accounts/api-key-store.ts';
import { AppError } from '../../../shared/contract/errors.ts';

test('look-ups that never finish do not block their keys or other keys permanently', async (t) => {
  let isHanging = true;
  const accounts = {
    findIdByKeyHash: (keyHash: string) =>
      isHanging ? new Promise<never>(() => undefined) : Promise.resolve(`account of ${keyHash}`),
  } as unknown as AccountStore;
  const redis = { get: async () => null, set: async () => 'OK' } as never;
  const store = new ApiKeyStore(redis, accounts, { maxLookUpMs: 20 });
  const find = (i: number): ReturnType<ApiKeyStore['find']> =>
    store.find(`mg-${String(i).padStart(43, '0')}`, () => 'network');
  // The maximum number of look-ups that one network may have in flight.
  const hanging = await Promise.allSettled(Array.from({ length: 5 }, (_, i) => find(i)));
  t.true(hanging.every(({ status }) => status === 'rejected'));
  isHanging = false;
  for (let i = 0; i < 10; i++) t.truthy(await find(i));
});

test('the callers of one network may use half of the concurrent look-ups; the other half is reserved for other networks', async (t) => {
  const pending: string[] = [];
  let finish: () => void = () => undefined;
  // All look-ups wait for this promise: one that starts after the others finished must not outlast the test.
  const finished = new Promise<void>((resolve) => (finish = resolve));
  const accounts = {
    findIdByKeyHash: async (keyHash: string) => {
      pending.push(keyHash);
      await finished;
      return null;
    },
  } as unknown as AccountStore;
  const redis = { get: async () => null } as never;
  const store = new ApiKeyStore(redis, accounts, { waitMs: 300 });
  const find = (i: number, network: string): Promise<unknown> =>
    store.find(`mg-${String(i).padStart(43, '0')}`, () => network).catch((error: unknown) => error);
  const crowd = Array.from({ length: 400 }, (_, i) => find(i, 'one'));
  const other = find(1_000, 'other');
  const answers = await Promise.all(crowd);
  t.true(answers.every((answer) => answer instanceof AppError && answer.code === 'service_unavailable'));
  t.true((await other) instanceof AppError);
  t.is(pending.length, 6);
  finish();
});
