import test from 'ava';
import { AccountStore } from '../../shared/accounts/account-store.ts';
import { RefillCodeStore } from '../../shared/accounts/refill-code-store.ts';
import { verifyLedger } from '../../shared/admin/verify/verify-ledger.ts';
import { ReservationStore } from '../../shared/money/reservation-store.ts';
import { LedgerStore } from '../../shared/ledger/ledger-store.ts';
import { PriceStore } from '../../shared/ledger/price-store.ts';
import { parseRub } from '../../shared/encoding/money.ts';
import { redisKeys, shardOf } from '../../shared/platform/redis/redis-keys.ts';
import { nameDatabase, requireMongod, useRealMongo, type RealMongo } from '../support/real-mongod.ts';
import { allQueues, useStack, type TestAccount, type TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

const realTest = requireMongod(test.serial);

const chat = { model: 'demo-echo', messages: [{ role: 'user', content: 'hello' }] };

/** The maximum time that a caller waits for MongoDB, doubled for a busy machine. */
const longestWaitMs = 2 * 5_000;

/** Callers that repeat their calls until they are stopped, and record the statuses. */
class Callers {
  readonly statuses = new Map<string, number[]>();
  longestMs = 0;
  #isStopped = false;
  #loops: Promise<void>[] = [];

  start(calls: Readonly<Record<string, () => Promise<number>>>): void {
    this.#loops = Object.entries(calls).map(async ([name, call]) => {
      const statuses: number[] = [];
      this.statuses.set(name, statuses);
      while (!this.#isStopped) {
        const startedMs = performance.now();
        statuses.push(await call());
        this.longestMs = Math.max(this.longestMs, performance.now() - startedMs);
      }
    });
  }

  /** Resolves when every caller has received one more 200. */
  async waitUntilServed(): Promise<void> {
    const before = new Map([...this.statuses].map(([name, { length }]) => [name, length]));
    await waitFor('all callers to be served', () =>
      [...this.statuses].every(([name, statuses]) => statuses.slice(before.get(name)).includes(200)),
    );
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all(this.#loops);
  }
}

interface LoadedStack {
  readonly set: RealMongo;
  readonly stack: TestStack;
  readonly account: TestAccount;
  readonly callers: Callers;
  /** Ends the load. @returns ledger differences, and the counts if any code was not credited exactly once */
  readonly endLoad: () => Promise<readonly unknown[]>;
}

async function startLoad(t: Parameters<typeof useRealMongo>[0]): Promise<LoadedStack> {
  const set = await useRealMongo(t, 'three');
  const env = { MONGODB_URL: nameDatabase(set.url) };
  const api = { keyWaitMs: 2_000, accountWaitMs: 3_000, databaseWaitMs: 5_000 };
  const stack = await useStack(t, { env, api, workers: [allQueues] });
  const account = await stack.createAccount();
  const codes = new RefillCodeStore(stack.mongo.db);
  const unused = await codes.create(2_000, { balanceNano: 1n, freeRequests: 0, expiresAt: null });
  const headers = { authorization: `Bearer ${account.apiKey}` };
  const get = (path: string) => async () => {
    const response = await fetch(`${stack.url}${path}`, { headers });
    await response.arrayBuffer();
    return response.status;
  };
  let redeemed = 0;
  const callers = new Callers();
  callers.start({
    chat: async () => {
      const response = await stack.post('/v1/chat/completions', account.apiKey, chat);
      await response.arrayBuffer();
      return response.status;
    },
    logs: get('/v1/users/request_logs'),
    stats: get('/v1/users/stats'),
    async redeem() {
      const response = await stack.post('/v1/users/redeem', account.apiKey, { code: unused[redeemed] });
      const { error } = (await response.json()) as { error?: { code: string; message: string } };
      // The previous attempt returned 503, but the code was credited.
      const isCredited = error?.code === 'invalid_code' && error.message.includes('already redeemed');
      if (response.status !== 200 && !isCredited) return response.status;
      redeemed += 1;
      return 200;
    },
  });
  await callers.waitUntilServed();
  return {
    set,
    stack,
    account,
    callers,
    async endLoad() {
      await callers.stop();
      const { redis, mongo } = stack;
      const shard = shardOf(account.id);
      await waitFor('the ledger', async () => (await redis.xlen(redisKeys.ledgerStream(shard))) === 0);
      const accounts = new AccountStore(mongo.db, stack.config);
      const ledger = new LedgerStore(mongo.db);
      const verified = await verifyLedger(
        {
          redis,
          accounts,
          ledger,
          prices: new PriceStore(mongo.db),
          reservations: new ReservationStore(redis),
        },
        { account: account.id, releaseOrphans: false, onProgress: () => undefined },
      );
      const { totalAddedNano } = await stack.readAccount(account.id);
      const added = totalAddedNano - parseRub('100')!;
      return [...verified.differences, ...(added === BigInt(redeemed) ? [] : [{ redeemed, added }])];
    },
  };
}

const findUnexpected = (statuses: readonly number[], ...expected: number[]): number[] =>
  statuses.filter((status) => !expected.includes(status));

realTest(
  'during a planned stepdown of the primary, no caller gets an error, and no money is lost',
  async (t) => {
    const { set, callers, endLoad } = await startLoad(t);
    await set.stepDown();
    await callers.waitUntilServed();
    t.deepEqual(await endLoad(), []);
    for (const [name, statuses] of callers.statuses) t.deepEqual(findUnexpected(statuses, 200), [], name);
  },
);

const outages = {
  dies: (set: RealMongo, member: number) => set.kill(member),
  hangs: (set: RealMongo, member: number) => set.stop(member),
};
for (const [what, begin] of Object.entries(outages)) {
  realTest(
    `if the primary ${what}, paid requests work until another is elected, other requests get a 503 in time, and no money is lost`,
    async (t) => {
      const { set, callers, endLoad } = await startLoad(t);
      const primary = await set.findPrimary();
      await begin(set, primary);
      await waitFor('another primary', async () => (await set.findPrimary()) !== primary);
      await callers.waitUntilServed();
      t.true(callers.longestMs < longestWaitMs, `a caller waited ${callers.longestMs} ms`);
      set.cont(primary);
      t.deepEqual(await endLoad(), []);
      for (const [name, statuses] of callers.statuses)
        t.deepEqual(findUnexpected(statuses, ...(name === 'chat' ? [200] : [200, 503])), [], name);
    },
  );
}
