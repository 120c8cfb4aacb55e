import { randomUUID } from 'node:crypto';
import test from 'ava';
import fc from 'fast-check';
import { runAdmission } from '../../../shared/money/admit-script.ts';
import { HotAccountStore } from '../../../shared/accounts/hot-account-store.ts';
import { runRefill } from '../../../shared/accounts/refill-script.ts';
import { releaseReservation, runSettlement } from '../../../shared/work/settlement/settle-script.ts';
import { createRefillEvent } from '../../../shared/ledger/usage-event.ts';
import { toLedgerDocument } from '../../../shared/ledger/ledger-store.ts';
import { redisKeys, shardOf } from '../../../shared/platform/redis/redis-keys.ts';
import { flushAll } from '../../support/all-of-redis.ts';
import { admission, readEntries, usageEvent } from '../../support/billing.ts';
import { openLedgerServices, type LedgerServices } from '../../support/ledger-services.ts';
import { interruptScripts } from '../../support/interrupt-scripts.ts';

/** Each script execution of a restore reads a few entries, and all other work continues between the executions. */

let services: LedgerServices;

test.beforeEach(async () => {
  services = await openLedgerServices();
});
test.afterEach.always(async () => {
  await services.close();
});

interface TestAccount {
  readonly id: string;
  readonly keyHash: string;
}

/** Restores through a client that runs `interrupt` before each of its scripts. */
function createInterrupted(entriesPerRun: number, interrupt: () => Promise<void>): HotAccountStore {
  const redis = interruptScripts(services.redis, interrupt);
  return new HotAccountStore(redis, services.accounts, services.ledger, { entriesPerRun });
}

async function charge(account: TestAccount, costNano: bigint): Promise<boolean> {
  const request = admission(account.id, { keyHash: account.keyHash, fixedNano: costNano });
  if ((await runAdmission(services.redis, request)).outcome !== 'ok') return false;
  await runSettlement(services.redis, usageEvent(account.id, request.requestId), costNano);
  return true;
}

const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('charge' as const), cost: fc.bigInt(1n, 50n) }) },
  fc.record({ kind: fc.constant('refill' as const), amount: fc.bigInt(1n, 90n), isCode: fc.boolean() }),
  fc.record({ kind: fc.constant('open' as const), cost: fc.bigInt(1n, 50n) }),
  fc.record({ kind: fc.constant('release' as const) }),
  fc.record({ kind: fc.constant('others' as const), entries: fc.integer({ min: 1, max: 6 }) }),
  fc.record({ kind: fc.constant('move' as const), maxEntries: fc.integer({ min: 1, max: 6 }) }),
  fc.record({ kind: fc.constant('crash' as const), maxEntries: fc.integer({ min: 1, max: 4 }) }),
  fc.record({ kind: fc.constant('lose' as const) }),
  fc.record({ kind: fc.constant('load' as const), entriesPerRun: fc.integer({ min: 1, max: 4 }) }),
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** One account, its expected state, and everything that can happen to it and alongside it. */
class Scenario {
  readonly #account: TestAccount;
  readonly #neighbour: TestAccount;
  readonly #open: { readonly requestId: string; readonly cost: bigint }[] = [];
  #balance = 1_000_000n;
  #added = 1_000_000n;
  #charges = 0;
  #codes = 0;

  constructor(account: TestAccount, neighbour: TestAccount) {
    this.#account = account;
    this.#neighbour = neighbour;
  }

  async apply(step: Step): Promise<void> {
    const { id, keyHash } = this.#account;
    switch (step.kind) {
      case 'charge': {
        if (!(await charge(this.#account, step.cost))) break;
        this.#balance -= step.cost;
        this.#charges += 1;
        break;
      }
      case 'refill': {
        if ((await services.redis.exists(redisKeys.account(id))) === 0) break;
        const { amount, isCode } = step;
        const event = createRefillEvent(randomUUID(), id, 'test', isCode ? 'CODE' : null);
        await runRefill(services.redis, { amountNano: amount, freeRequests: 0, event });
        this.#balance += amount;
        this.#added += amount;
        if (isCode) this.#codes += 1;
        break;
      }
      case 'open': {
        const request = admission(id, { keyHash, fixedNano: step.cost });
        if ((await runAdmission(services.redis, request)).outcome !== 'ok') break;
        this.#open.push({ requestId: request.requestId, cost: step.cost });
        break;
      }
      case 'release': {
        // This also releases a reservation whose account is not in Redis.
        const request = this.#open.pop();
        if (request === undefined) break;
        const { requestId } = request;
        await releaseReservation(services.redis, { accountId: id, requestId, claimHash: null });
        break;
      }
      case 'others': {
        for (let i = 0; i < step.entries; i++) await charge(this.#neighbour, 1n);
        break;
      }
      case 'move':
        await services.moveSome(shardOf(id), step.maxEntries);
        break;
      case 'crash': {
        // The ledger reader died right after its first write to MongoDB.
        const entries = (await readEntries(services.redis, id)).slice(0, step.maxEntries);
        await services.ledger.insertEntries(entries.map(toLedgerDocument));
        break;
      }
      case 'lose':
        await services.redis.del(redisKeys.account(id));
        break;
      case 'load':
        await createInterrupted(step.entriesPerRun, async () => undefined).load(id);
        await this.compare();
        break;
      default:
        step satisfies never;
    }
  }

  /** Checks that the account's state in Redis, if any, is the expected one. */
  async compare(): Promise<void> {
    const hash = await services.readHash(this.#account.id);
    if (hash['bal'] === undefined) return;
    const { bal, added, charges, codes, res } = hash;
    const reserved = this.#open.reduce((sum, { cost }) => sum + cost, 0n);
    const found = [bal, added, charges ?? '0', codes ?? '0', res].join(' ');
    const expected = [this.#balance, this.#added, this.#charges, this.#codes, reserved].join(' ');
    if (found !== expected)
      throw new Error(`balance, added, charges, codes, reserved: ${found}, not ${expected}`);
  }

  async end(): Promise<void> {
    await services.hotAccounts.load(this.#account.id);
    await this.compare();
    await services.moveAll();
    const settled = await services.accounts.findById(this.#account.id);
    if (settled?.balanceNano !== this.#balance || settled.charges !== this.#charges)
      throw new Error(`settled: ${settled?.balanceNano}, ${settled?.charges} charges`);
  }
}

test.serial(
  'an account stays exact while several processes restore it and entries are added, moved to MongoDB or left half moved',
  async (t) => {
    const restore = fc.record({
      entriesPerRun: fc.integer({ min: 1, max: 5 }),
      before: fc.array(step, { maxLength: 12 }),
      between: fc.array(fc.array(step, { maxLength: 4 }), { maxLength: 8 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(restore, { minLength: 1, maxLength: 4 }), async (restores) => {
        const account = await services.createAccount({ balanceNano: 1_000_000n });
        const neighbour = await services.createAccount({
          balanceNano: 1_000_000n,
          shard: shardOf(account.id),
        });
        const scenario = new Scenario(account, neighbour);
        for (const { entriesPerRun, before, between } of restores) {
          for (const one of before) await scenario.apply(one);
          await scenario.apply({ kind: 'lose' });
          const stepsBetween = [...between];
          const store = createInterrupted(entriesPerRun, async () => {
            for (const one of stepsBetween.shift() ?? []) await scenario.apply(one);
          });
          await store.load(account.id);
          await scenario.compare();
          const stepsDuringReload = [...between];
          const other = createInterrupted(entriesPerRun, async () => {
            for (const one of stepsDuringReload.shift() ?? []) await scenario.apply(one);
          });
          await other.reload(account.id);
          await scenario.compare();
        }
        await scenario.end();
      }),
      { numRuns: 25 },
    );
    t.pass();
  },
);

test.serial(
  'no script execution of a restore reads more than a few hundred entries, however many are waiting',
  async (t) => {
    const account = await services.createAccount({ balanceNano: 1_000n });
    await services.moveAll();
    await charge(account, 7n);
    const stream = redisKeys.ledgerStream(shardOf(account.id));
    const [entry] = await services.redis.xrange(stream, '-', '+');
    const entries = 5_000;
    for (let i = 1; i < entries; i++)
      void services.redis.xadd(stream, '*', ...withOwner(entry![1], randomUUID()));
    await services.redis.ping();
    t.is(await services.redis.xlen(stream), entries);
    await services.redis.del(redisKeys.account(account.id));
    let runs = 0;
    await createInterrupted(500, async () => {
      runs += 1;
    }).load(account.id);
    t.true(runs >= entries / 500, `${runs} runs`);
    t.like(await services.readHash(account.id), { bal: '993', charges: '1' });
  },
);

function withOwner(fields: readonly string[], accountId: string): string[] {
  return fields.map((field, i) => (i > 0 && fields[i - 1] === 'account' ? accountId : field));
}

test.serial('if Redis loses everything between two script executions, the restore starts over', async (t) => {
  const account = await services.createAccount({ balanceNano: 1_000n });
  await services.moveAll();
  for (let i = 0; i < 6; i++) await charge(account, 10n);
  await services.redis.del(redisKeys.account(account.id));
  let runs = 0;
  await createInterrupted(2, async () => {
    runs += 1;
    if (runs === 3) await flushAll(services.redis);
  }).load(account.id);
  // Charges that had not reached MongoDB are lost with Redis.
  t.like(await services.readHash(account.id), { bal: '1000' });
  await charge(account, 1n);
  await services.moveAll();
  t.is((await services.accounts.findById(account.id))?.balanceNano, 999n);
});

test.serial(
  'if Redis loses its latest entries between two script executions, the restore starts over',
  async (t) => {
    const account = await services.createAccount({ balanceNano: 1_000n });
    await services.moveAll();
    const stream = redisKeys.ledgerStream(shardOf(account.id));
    for (let i = 0; i < 3; i++) await charge(account, 10n);
    const before = await services.redis.dumpBuffer(stream);
    for (let i = 0; i < 5; i++) await charge(account, 100n);
    await services.redis.del(redisKeys.account(account.id));
    let runs = 0;
    await createInterrupted(2, async () => {
      runs += 1;
      if (runs === 4) await services.redis.restore(stream, 0, before, 'REPLACE');
    }).load(account.id);
    t.like(await services.readHash(account.id), { bal: '970', charges: '3' });
  },
);

test.serial('if several requests need an account at the same moment, it is restored once', async (t) => {
  const account = await services.createAccount({ balanceNano: 1_000n });
  await services.redis.del(redisKeys.account(account.id));
  let runs = 0;
  const store = createInterrupted(500, async () => {
    runs += 1;
  });
  await Promise.all(Array.from({ length: 50 }, () => store.get(account.id)));
  // The second script updates Redis with the key, limit and ban in MongoDB, in case they changed between the two.
  t.true(runs <= 2, `${runs} scripts ran`);
});
