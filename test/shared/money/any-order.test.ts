import { randomUUID } from 'node:crypto';
import test from 'ava';
import fc from 'fast-check';
import { runAdmission } from '../../../shared/money/admit-script.ts';
import { createIdempotencyClaim } from '../../../shared/money/idempotency-claim.ts';
import { runRefill } from '../../../shared/accounts/refill-script.ts';
import { parseReservation, ReservationStore } from '../../../shared/money/reservation-store.ts';
import { releaseReservation, runSettlement } from '../../../shared/work/settlement/settle-script.ts';
import { createRefillEvent, type LedgerEntry } from '../../../shared/ledger/usage-event.ts';
import { redisKeys, shardOf } from '../../../shared/platform/redis/redis-keys.ts';
import { flushAll } from '../../support/all-of-redis.ts';
import { AccountModel, type ModelEntry } from '../../support/account-model.ts';
import {
  admission,
  createHotAccount,
  failureEvent,
  readBalance,
  readEntries,
  usageEvent,
} from '../../support/billing.ts';
import { useRedis } from '../../support/use-redis.ts';

const redis = useRedis(test);

const which = fc.nat(30);
const cost = fc.bigInt(0n, 800n);
const step = fc.oneof(
  fc.record({
    kind: fc.constant('admit' as const),
    cost: fc.bigInt(0n, 500n),
    free: fc.boolean(),
    /** Few keys, so that they collide. */
    claim: fc.option(fc.nat(3), { freq: 3 }),
  }),
  fc.record({ kind: fc.constant('settle' as const), which, cost, fails: fc.boolean() }),
  fc.record({ kind: fc.constant('release' as const), which }),
  fc.record({ kind: fc.constant('orphan' as const), which }),
  fc.record({
    kind: fc.constant('refill' as const),
    amount: fc.bigInt(-300n, 600n),
    free: fc.integer({ min: -2, max: 2 }),
    isCode: fc.boolean(),
    isRepeat: fc.boolean(),
  }),
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

interface KnownRequest {
  readonly requestId: string;
  readonly claimHash: string | null;
}

/** One account in Redis and its model, to which the same steps are applied. */
class Account {
  readonly #id: string;
  readonly #model: AccountModel;
  readonly #requests: KnownRequest[] = [];
  #refills = 0;

  constructor(id: string, free: number) {
    this.#id = id;
    this.#model = new AccountModel(free);
  }

  async take(step: Step): Promise<void> {
    switch (step.kind) {
      case 'admit':
        await this.#admit(step);
        break;
      case 'settle':
        await this.#settle(this.#pick(step.which), step.cost, step.fails);
        break;
      case 'release':
        await this.#release(this.#pick(step.which));
        break;
      case 'orphan':
        await this.#orphan(this.#pick(step.which));
        break;
      case 'refill':
        await this.#refill(step);
        break;
      default:
        step satisfies never;
    }
    await this.#compare();
  }

  /** Releases every request that is still open. */
  async end(): Promise<void> {
    for (const request of this.#requests) await this.#release(request);
    await this.#compare();
    const { reserved, freeHeld } = await readBalance(redis(), this.#id);
    expect(reserved === 0n && freeHeld === 0, 'something is still reserved after all requests ended');
  }

  /** Finished requests are not removed, so that later steps also settle and release them again. */
  #pick(index: number): KnownRequest | undefined {
    return this.#requests[index % Math.max(1, this.#requests.length)];
  }

  async #admit(step: Step & { kind: 'admit' }): Promise<void> {
    const claim = step.claim === null ? null : createIdempotencyClaim(`key ${step.claim}`, '/', {});
    const request = admission(this.#id, { fixedNano: step.cost, freeAllowed: step.free, claim });
    const { requestId } = request;
    const claimHash = claim?.keyHash ?? null;
    const { outcome } = await runAdmission(redis(), request);
    const expected = this.#model.admit(requestId, step.cost, step.free, claimHash);
    expect(outcome === expected, `admission was ${outcome}, not ${expected}`);
    if (outcome === 'ok') this.#requests.push({ requestId, claimHash });
  }

  async #settle(request: KnownRequest | undefined, usageCost: bigint, fails: boolean): Promise<void> {
    if (request === undefined) return;
    const costNano = fails ? 0n : usageCost;
    const event = (fails ? failureEvent : usageEvent)(this.#id, request.requestId);
    await runSettlement(redis(), event, fails ? null : costNano, { claimHash: request.claimHash });
    this.#model.settle(request.requestId, costNano, fails);
  }

  async #release(request: KnownRequest | undefined): Promise<void> {
    if (request === undefined) return;
    await releaseReservation(redis(), { accountId: this.#id, ...request });
    this.#model.release(request.requestId);
  }

  async #orphan(request: KnownRequest | undefined): Promise<void> {
    if (request === undefined) return;
    const value = await redis().hget(redisKeys.reservations(shardOf(this.#id)), request.requestId);
    if (value !== null)
      await new ReservationStore(redis()).releaseOrphan(parseReservation(request.requestId, value));
    this.#model.orphan(request.requestId);
  }

  async #refill({ amount, free, isCode, isRepeat }: Step & { kind: 'refill' }): Promise<void> {
    if (!isRepeat) this.#refills += 1;
    const refillId = `${this.#id}-${this.#refills}`;
    const event = createRefillEvent(refillId, this.#id, 'test', isCode ? 'CODE' : null);
    await runRefill(redis(), { amountNano: amount, freeRequests: free, event });
    this.#model.refill(refillId, amount, free, isCode);
  }

  async #compare(): Promise<void> {
    const now = await readBalance(redis(), this.#id);
    const expected = this.#model.balance;
    expect(
      now.balance === expected.balance &&
        now.reserved === expected.reserved &&
        now.free === expected.free &&
        now.freeHeld === expected.freeHeld,
      `${describe(now)} instead of ${describe(expected)}`,
    );
    expect(
      now.reserved >= 0n && now.reserved <= now.balance && now.freeHeld >= 0 && now.freeHeld <= now.free,
      `impossible: ${describe(now)}`,
    );
    const entries = (await readEntries(redis(), this.#id)).map(toModelEntry);
    expect(describe(entries) === describe(this.#model.entries), `wrong entries: ${describe(entries)}`);
    for (const hash of new Set(this.#requests.map((request) => request.claimHash))) {
      if (hash === null) continue;
      const owner = await redis().hget(redisKeys.claim(this.#id, hash), 'id');
      expect(owner === (this.#model.claims.get(hash) ?? null), `a claim belongs to ${owner}`);
    }
  }
}

function expect(holds: boolean, message: string): void {
  if (!holds) throw new Error(message);
}

const describe = (value: unknown): string =>
  JSON.stringify(value, (_, inner: unknown) => (typeof inner === 'bigint' ? inner.toString() : inner));

function toModelEntry(entry: LedgerEntry): ModelEntry {
  if (entry.kind === 'refill') {
    const { kind, amountNano, freeRequests, ordinal } = entry;
    return { kind, amount: amountNano, shortfall: 0n, free: freeRequests, ordinal };
  }
  const { kind, costNano, shortfallNano, free, ordinal } = entry;
  return { kind, amount: -costNano, shortfall: shortfallNano, free: free ? -1 : 0, ordinal };
}

test.serial(
  'after any sequence of steps, balance, reservations, free requests, entries and claims are exact',
  async (t) => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        // Without this, each run would read the entries of all earlier runs, too.
        await flushAll(redis());
        const id = await createHotAccount(redis(), 0n, { free: 3 });
        const account = new Account(id, 3);
        await account.take({ kind: 'refill', amount: 500n, free: 0, isCode: true, isRepeat: false });
        for (const one of steps) await account.take(one);
        await account.end();
      }),
      { numRuns: 200 },
    );
    t.pass();
  },
);

test.serial(
  'under concurrent operations the balance never goes below zero and equals the sum of the entries',
  async (t) => {
    const id = await createHotAccount(redis(), 0n);
    const refillOnce = async (refillId: string): Promise<boolean> =>
      (await runRefill(redis(), {
        amountNano: 500n,
        freeRequests: 1,
        event: createRefillEvent(refillId, id, 'test', 'CODE'),
      })) !== null;
    const store = new ReservationStore(redis());
    const runConcurrently = async (): Promise<void> => {
      const refillId = randomUUID();
      await Promise.all([refillOnce(refillId), refillOnce(refillId)]);
      const claim = createIdempotencyClaim(randomUUID(), '/', {});
      const requests = [
        admission(id, { fixedNano: 120n }),
        admission(id, { fixedNano: 90n, freeAllowed: true }),
        admission(id, { fixedNano: 70n, claim }),
        admission(id, { fixedNano: 70n, claim }),
      ];
      await Promise.all(requests.map((request) => runAdmission(redis(), request)));
      await Promise.all(
        requests.flatMap(({ requestId }, i) => {
          const claimHash = i < 2 ? null : claim.keyHash;
          const settle = () => runSettlement(redis(), usageEvent(id, requestId), 100n, { claimHash });
          const orphan = async () => {
            const value = await redis().hget(redisKeys.reservations(shardOf(id)), requestId);
            if (value !== null) await store.releaseOrphan(parseReservation(requestId, value));
          };
          return [
            settle(),
            orphan(),
            settle(),
            releaseReservation(redis(), { accountId: id, requestId, claimHash }),
          ];
        }),
      );
    };
    await Promise.all(Array.from({ length: 25 }, runConcurrently));
    const entries = await readEntries(redis(), id);
    const sum = entries.map(toModelEntry).reduce((total, entry) => total + entry.amount, 0n);
    const now = await readBalance(redis(), id);
    t.is(now.balance, sum);
    t.true(now.balance >= 0n);
    t.is(now.reserved, 0n);
    t.is(now.freeHeld, 0);
    const ordinals = (kind: LedgerEntry['kind']): (number | null)[] =>
      entries.filter((entry) => entry.kind === kind).map((entry) => entry.ordinal);
    t.deepEqual(
      ordinals('charge'),
      ordinals('charge').map((_, i) => i + 1),
    );
    t.deepEqual(
      ordinals('refill'),
      Array.from({ length: 25 }, (_, i) => i + 1),
    );
  },
);
