import test from 'ava';
import { listJobs } from '../../../shared/admin/jobs.ts';
import { readPlace } from '../../../shared/admin/list-place.ts';
import type { Page } from '../../../shared/admin/page.ts';
import { listBatches, readBatches, type BatchFilter } from '../../../shared/admin/read-batches.ts';
import {
  createRedis,
  waitUntilReady,
  type RedisClient,
} from '../../../shared/platform/redis/redis-client.ts';
import { redisKeys, shardOf } from '../../../shared/platform/redis/redis-keys.ts';
import { createLogger } from '../../../shared/platform/runtime/logger.ts';
import { flushAll } from '../../support/all-of-redis.ts';
import { openTestRedis, type OpenedRedis } from '../../support/stores.ts';
import { watchRedis } from '../../support/watch-redis.ts';

/** Pages of batches and of jobs, as operators list them. */

let server: OpenedRedis;
let redis: RedisClient;

test.before(async () => {
  server = await openTestRedis();
  redis = createRedis(server.url, 'commands', createLogger('test', 'silent'));
  await waitUntilReady(redis);
});
test.after.always(async () => {
  redis?.disconnect();
  await server?.close();
});
test.serial.beforeEach(() => flushAll(redis));

const accountOf = (i: number): string => `account-${i % 20}`;
const idOf = (i: number): string => `batch_${String(i).padStart(5, '0')}`;

/** Creates records of ended batches, with only the fields that these tests need. */
async function endBatches(count: number, of: (i: number) => { atMs: number; status?: string }) {
  await Promise.all(
    Array.from({ length: count }, (_, i) => {
      const [accountId, id, { atMs, status = 'completed' }] = [accountOf(i), idOf(i), of(i)];
      return Promise.all([
        redis.hset(redisKeys.batch(accountId, id), { st: status, at: 1 }),
        redis.zadd(redisKeys.batchesOfAccount(accountId), atMs, id),
        redis.zadd(redisKeys.batchesEnded(shardOf(accountId)), atMs, `${accountId} ${id}`),
      ]);
    }),
  );
}

async function readAll<T>(readPage: (after: string | null) => Promise<Page<T>>): Promise<T[]> {
  const rows: T[] = [];
  for (let after: string | null = null; ;) {
    const page: Page<T> = await readPage(after);
    rows.push(...page.rows);
    if (!page.hasMore) return rows;
    after = page.lastId;
  }
}

const listPage = (filter: BatchFilter, after: string | null, limit: number) =>
  listBatches(redis, filter, { limit, after: after === null ? null : readPlace(after) });

const completed = { accountId: null, status: 'completed' } as const;

test.serial(
  'pages list each batch once, also those that ended together, while batches are deleted',
  async (t) => {
    await endBatches(300, (i) => ({ atMs: i < 250 ? 5_000 : i }));
    const expected: string[] = [];
    for await (const { id } of readBatches(redis, completed)) expected.push(id);
    t.deepEqual(
      expected.toSorted(),
      Array.from({ length: 300 }, (_, i) => idOf(i)),
    );
    const ids = await readAll(async (after) => {
      const page = await listPage(completed, after, 7);
      // The place where the next page begins.
      const { accountId, id } = page.rows.at(-1)!;
      await redis.zrem(redisKeys.batchesEnded(shardOf(accountId)), `${accountId} ${id}`);
      return page;
    });
    t.deepEqual(
      ids.map(({ id }) => id),
      expected,
    );
  },
);

test.serial('a page reads its own batches, however far it is from the newest', async (t) => {
  await endBatches(3_000, (i) => ({ atMs: 10_000 + i }));
  const after = `12000:${accountOf(2_000)}:${idOf(2_000)}`;
  const commands = await watchRedis(t, server.url);
  const page = await listPage(completed, after, 10);
  t.deepEqual(
    page.rows.map(({ id }) => id),
    Array.from({ length: 10 }, (_, i) => idOf(1_999 - i)),
  );
  t.true(page.hasMore);
  await redis.ping();
  const count = commands.filter(({ name }) => name.startsWith('eval')).length;
  // The first call of a script is followed by another one, with its text.
  t.true(count <= 2 * (16 + 11), `${count} reads`);
  const ofAccount = { accountId: accountOf(0), status: 'completed' } as const;
  const own = await listPage(ofAccount, `12000:${accountOf(0)}:${idOf(2_000)}`, 10);
  t.deepEqual(
    own.rows.map(({ id }) => id),
    Array.from({ length: 10 }, (_, i) => idOf(1_980 - 20 * i)),
  );
});

test.serial(
  'a page of a rare status ends after a thousand other batches, and says where the next one begins',
  async (t) => {
    await endBatches(2_500, (i) => ({ atMs: i, status: i === 3 ? 'expired' : 'completed' }));
    const filter = { accountId: null, status: 'expired' } as const;
    const first = await listPage(filter, null, 10);
    t.deepEqual(first.rows, []);
    t.true(first.hasMore);
    t.is(readPlace(first.lastId!)!.id, idOf(1_500));
    const rows = await readAll((after) => listPage(filter, after, 10));
    t.deepEqual(
      rows.map(({ id }) => id),
      [idOf(3)],
    );
  },
);

test.serial('unfinished batches of all accounts are listed on pages, newest first', async (t) => {
  const count = 60;
  await Promise.all(
    Array.from({ length: count }, (_, i) => {
      const [accountId, id] = [accountOf(i), idOf(i)];
      return Promise.all([
        redis.hset(redisKeys.batch(accountId, id), { st: 'in_progress', at: 1 }),
        redis.zadd(redisKeys.batchesOpen(accountId), i, id),
        redis.zadd(redisKeys.batchWindows(shardOf(accountId)), i, `${accountId} ${id}`),
      ]);
    }),
  );
  const rows = await readAll((after) => listPage({ accountId: null, status: null }, after, 7));
  t.deepEqual(
    rows.map(({ id }) => id),
    Array.from({ length: count }, (_, i) => idOf(count - 1 - i)),
  );
});

test.serial(
  'a page of jobs reads its own jobs, also if the last one of the page before was deleted',
  async (t) => {
    const accountId = accountOf(0);
    const jobOf = (i: number): string => `job-${String(i).padStart(4, '0')}`;
    const key = redisKeys.jobsList(accountId, 'all');
    for (let i = 0; i < 2_000; i++) {
      await redis.hset(redisKeys.job(accountId, jobOf(i)), { st: 's', at: 7, dl: 9, log: 's7' });
      // Several at the same moment: their order is that of their ids.
      await redis.zadd(key, Math.floor(i / 4), jobOf(i));
    }
    const commands = await watchRedis(t, server.url);
    const readPage = (after: string | null) =>
      listJobs(
        { redis },
        { accountId, status: null },
        { limit: 100, after: after === null ? null : readPlace(after) },
      );
    const ids = await readAll(async (after) => {
      const page = await readPage(after);
      await redis.zrem(key, page.rows.at(-1)!.id);
      return page;
    });
    t.deepEqual(
      ids.map(({ id }) => id),
      Array.from({ length: 2_000 }, (_, i) => jobOf(1_999 - i)),
    );
    await redis.ping();
    const count = commands.filter(({ name }) => name.startsWith('eval')).length;
    t.true(count <= 20 * 2 + 2, `${count} reads of 20 pages`);
  },
);
