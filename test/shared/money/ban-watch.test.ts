import { mock } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { BanWatch } from '../../../shared/money/ban-watch.ts';
import { createLogger } from '../../../shared/platform/runtime/logger.ts';
import { waitFor } from '../../support/wait-for.ts';

interface Rig {
  readonly watch: BanWatch;
  readonly banned: Set<string>;
  readonly active: Set<string>;
  readonly ended: readonly string[];
  readonly lookedUp: readonly (readonly string[])[];
  /** Look-ups that failed because Redis was unavailable. */
  failures: number;
  isRedisUnavailable: boolean;
  isListBroken: boolean;
}

function createRig(t: ExecutionContext): Rig {
  const banned = new Set<string>();
  const active = new Set<string>();
  const ended: string[] = [];
  const lookedUp: string[][] = [];
  const watch = new BanWatch({
    hotAccounts: {
      findBanned(accountIds) {
        if (rig.isRedisUnavailable) {
          rig.failures += 1;
          return Promise.reject(new Error('Redis is away'));
        }
        lookedUp.push([...accountIds]);
        return Promise.resolve(new Set(accountIds.filter((id) => banned.has(id))));
      },
    },
    listAccounts() {
      if (rig.isListBroken) throw new TypeError('no list');
      return [...active, ...active];
    },
    endAccount: (accountId) => ended.push(accountId),
    log: createLogger('test', 'silent'),
  });
  t.teardown(() => watch.stop());
  const rig: Rig = {
    watch,
    banned,
    active,
    ended,
    lookedUp,
    failures: 0,
    isRedisUnavailable: false,
    isListBroken: false,
  };
  return rig;
}

/** The docs promise that a ban takes effect within this time, even if its announcement is lost. */
const promisedMs = 2_000;

test.serial('a ban takes effect within two seconds even if one look-up fails', async (t) => {
  mock.timers.enable({ apis: ['setInterval'] });
  t.teardown(() => mock.timers.reset());
  const rig = createRig(t);
  rig.banned.add('ann');
  rig.active.add('ann');
  rig.isRedisUnavailable = true;
  mock.timers.tick(promisedMs - 1_000);
  await nextTurn();
  t.is(rig.failures, 1);
  rig.isRedisUnavailable = false;
  mock.timers.tick(1_000);
  await nextTurn();
  t.deepEqual(rig.ended, ['ann']);
});

test('work that starts after the ban of its account was announced is ended, until the account is unbanned', async (t) => {
  const { watch, banned, ended } = createRig(t);
  const start = (): void => watch.checkStarted({ accountId: 'ann', admittedAtMs: Date.now() });
  const change = { kind: 'account', accountId: 'ann' } as const;
  start();
  t.deepEqual(ended, []);
  banned.add('ann');
  await watch.handle(change);
  t.deepEqual(ended, ['ann']);
  start();
  t.deepEqual(ended, ['ann', 'ann']);
  banned.delete('ann');
  await watch.handle(change);
  start();
  t.deepEqual(ended, ['ann', 'ann']);
});

test('the account of work that waited long before it started is looked up; for other work there is no look-up', async (t) => {
  const { watch, banned, ended, lookedUp } = createRig(t);
  banned.add('ann');
  watch.checkStarted({ accountId: 'ann', admittedAtMs: Date.now() });
  t.is(lookedUp.length, 0);
  watch.checkStarted({ accountId: 'ann', admittedAtMs: Date.now() - 60_000 });
  await waitFor('the look-up', () => ended.length === 1);
});

test('if changes may have been missed, each account with work in flight is looked up once', async (t) => {
  const { watch, banned, active, ended, lookedUp } = createRig(t);
  for (const id of ['ann', 'bob', 'eve']) active.add(id);
  banned.add('eve').add('zoe');
  await watch.handle(null);
  t.deepEqual(lookedUp, [['ann', 'bob', 'eve']]);
  t.deepEqual(ended, ['eve']);
});

test('a failed look-up is repeated', async (t) => {
  const rig = createRig(t);
  rig.banned.add('ann');
  rig.active.add('ann');
  rig.isRedisUnavailable = true;
  await rig.watch.handle({ kind: 'account', accountId: 'ann' });
  t.deepEqual(rig.ended, []);
  rig.isRedisUnavailable = false;
  await waitFor('the next look-up', () => rig.ended.length === 1);
});

test('an error in one check does not prevent later checks', async (t) => {
  const rig = createRig(t);
  rig.banned.add('ann');
  rig.active.add('ann');
  rig.isListBroken = true;
  await t.throwsAsync(rig.watch.handle(null), { message: 'no list' });
  rig.isListBroken = false;
  await waitFor('the next check', () => rig.ended.length === 1);
});
