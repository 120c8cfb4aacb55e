import { randomUUID } from 'node:crypto';
import test from 'ava';
import pino from 'pino';
import {
  createRedis,
  waitUntilReady,
  type RedisClient,
} from '../../../../shared/platform/redis/redis-client.ts';
import { redisKeys, shardOf } from '../../../../shared/platform/redis/redis-keys.ts';
import { createFileId } from '../../../../shared/work/files/file-id.ts';
import type { FilePurpose } from '../../../../shared/work/files/file-record.ts';
import { FileStore } from '../../../../shared/work/files/file-store.ts';
import { runFileFunction } from '../../../support/file-functions.ts';
import { openTestRedis, type OpenedRedis } from '../../../support/stores.ts';

const bounds = { maxFiles: 1_000, maxBytes: 1_000_000 };
const daySeconds = 24 * 60 * 60;

let server: OpenedRedis;
let redis: RedisClient;
let store: FileStore;

test.before(async () => {
  server = await openTestRedis();
  redis = createRedis(server.url, 'commands', pino({ level: 'silent' }));
  await waitUntilReady(redis);
  store = new FileStore(redis);
});
test.after.always(async () => {
  redis.disconnect();
  await server.close();
});

interface Created {
  readonly id: string;
  readonly key: string;
}

async function create(
  accountId: string,
  {
    createdAtMs = Date.now(),
    purpose = 'batch',
    lifetimeSeconds = daySeconds,
  }: { createdAtMs?: number; purpose?: FilePurpose; lifetimeSeconds?: number } = {},
): Promise<Created> {
  const id = createFileId(createdAtMs, lifetimeSeconds);
  const key = `batch-files/${randomUUID()}`;
  const file = { id, name: 'a.jsonl', purpose, key, byteLength: 10, verdict: null };
  await store.create(accountId, file, bounds);
  return { id, key };
}

const run = (accountId: string, name: string, ...args: (string | number)[]): Promise<unknown> =>
  runFileFunction(redis, accountId, name, ...args);

async function listTrash(accountId: string): Promise<string[]> {
  return await redis.zrange(redisKeys.fileTrash(shardOf(accountId)), '-inf', String(Date.now()), 'BYSCORE');
}

const readHeld = async (accountId: string) => await redis.hgetall(redisKeys.filesHeld(accountId));

test('a file is found by its account alone, until the millisecond in its id', async (t) => {
  const accountId = randomUUID();
  const createdAtMs = Date.now() - 1_000;
  const { id, key } = await create(accountId, { createdAtMs, lifetimeSeconds: 3_600 });
  t.like(await store.find(accountId, id), {
    id,
    name: 'a.jsonl',
    purpose: 'batch',
    byteLength: 10,
    createdAtMs,
    expiresAtMs: createdAtMs + 3_600_000,
    verdict: null,
    isGrowing: false,
  });
  t.deepEqual((await store.findContent(accountId, id))?.segments, [{ key, byteLength: 10 }]);
  t.is(await store.find(randomUUID(), id), null);
  t.is(await store.find(accountId, `${id.slice(0, -1)}_`), null, 'not an id');
  t.false(await store.delete(randomUUID(), id));

  const { id: expired } = await create(accountId, { createdAtMs: Date.now() - daySeconds * 1_000 });
  t.is(await store.find(accountId, expired), null);
  t.false(await store.delete(accountId, expired));
  t.is(
    (await store.list(accountId, { purpose: null, after: null, order: 'desc', limit: 5 })).files.length,
    1,
  );
});

test('pages have every file once, in order of creation, even if files are deleted while they are read', async (t) => {
  const accountId = randomUUID();
  const startMs = Date.now() - 60_000;
  const ids: string[] = [];
  for (let i = 0; i < 7; i++) {
    const purpose = i % 2 === 0 ? 'batch' : 'batch_output';
    ids.push((await create(accountId, { createdAtMs: startMs + i, purpose, lifetimeSeconds: 7_200 - i })).id);
  }
  for (const order of ['asc', 'desc'] as const) {
    const seen: string[] = [];
    for (let after: string | null = null, isMore = true; isMore;) {
      const page = await store.list(accountId, { purpose: null, after, order, limit: 3 });
      seen.push(...page.files.map(({ id }) => id));
      after = seen.at(-1)!;
      isMore = page.isMore;
    }
    t.deepEqual(seen, order === 'asc' ? ids : ids.toReversed());
  }
  const results = { purpose: 'batch_output', after: null, order: 'asc', limit: 10 } as const;
  t.deepEqual(
    (await store.list(accountId, results)).files.map(({ id }) => id),
    [ids[1]!, ids[3]!, ids[5]!],
  );

  const emptied: string[] = [];
  for (let after: string | null = null, isMore = true; isMore;) {
    const page = await store.list(accountId, { purpose: null, after, order: 'desc', limit: 2 });
    for (const { id } of page.files) {
      emptied.push(id);
      await store.delete(accountId, id);
    }
    after = emptied.at(-1)!;
    isMore = page.isMore;
  }
  t.deepEqual(emptied, ids.toReversed());
  t.deepEqual(await readHeld(accountId), {});
});

test('the bounds of an account hold for files that are created at the same time', async (t) => {
  const accountId = randomUUID();
  const narrow = { maxFiles: 3, maxBytes: 100 };
  const createOne = (byteLength: number) => {
    const key = `batch-files/${randomUUID()}`;
    const id = createFileId(Date.now(), daySeconds);
    return store.create(
      accountId,
      { id, name: 'a.jsonl', purpose: 'batch', key, byteLength, verdict: null },
      narrow,
    );
  };
  const replies = await Promise.all([60, 60, 60].map(createOne));
  t.is(replies.filter(({ outcome }) => outcome === 'ok').length, 1);
  t.deepEqual(
    replies.find(({ outcome }) => outcome !== 'ok'),
    {
      outcome: 'too_many_bytes',
      files: 1,
      byteLength: 60,
    },
  );
  t.is((await listTrash(accountId)).length, 2, 'the objects of refused files are deleted');
  await createOne(1);
  await createOne(1);
  t.is((await createOne(1)).outcome, 'too_many_files');
  t.like(await store.begin(accountId, 'batch-files/x', 0, narrow), { outcome: 'too_many_files', files: 3 });
  t.like(await store.begin(accountId, 'batch-files/x', 50, { ...narrow, maxFiles: 4 }), {
    outcome: 'too_many_bytes',
    byteLength: 62,
  });
});

test('an object whose file is never created is in the trash after a day', async (t) => {
  const accountId = randomUUID();
  const trash = redisKeys.fileTrash(shardOf(accountId));
  const [key, lost] = [`batch-files/${randomUUID()}`, `batch-files/${randomUUID()}`];
  for (const one of [key, lost]) await store.begin(accountId, one, 0, bounds);
  const id = createFileId(Date.now(), daySeconds);
  await store.create(
    accountId,
    { id, name: 'a.jsonl', purpose: 'batch', key, byteLength: 1, verdict: null },
    bounds,
  );
  t.is(await redis.zscore(trash, key), null);
  t.true(Number(await redis.zscore(trash, lost)) > Date.now() + daySeconds * 1_000);
});

test('a file that a batch holds loses its objects only once no batch holds it', async (t) => {
  const accountId = randomUUID();
  const { id, key } = await create(accountId);
  t.is(await run(accountId, 'holdFile', id), 1);
  t.is(await run(accountId, 'holdFile', id), 1);
  t.true(await store.delete(accountId, id));
  t.is(await store.find(accountId, id), null);
  t.false(await store.delete(accountId, id));
  t.is(await run(accountId, 'holdFile', id), null, 'no further batch can read it');
  t.deepEqual(
    (await store.list(accountId, { purpose: null, after: null, order: 'desc', limit: 5 })).files,
    [],
  );
  await run(accountId, 'releaseFile', id);
  t.deepEqual((await store.findHeld(accountId, id))?.segments, [{ key, byteLength: 10 }]);
  t.deepEqual(await readHeld(accountId), { count: '1', bytes: '10' });
  t.false((await listTrash(accountId)).includes(key));
  await run(accountId, 'releaseFile', id);
  t.is(await store.findHeld(accountId, id), null);
  t.true((await listTrash(accountId)).includes(key));
  t.deepEqual(await readHeld(accountId), {});
});

test('a file that a batch has held stays when the batch ends', async (t) => {
  const accountId = randomUUID();
  const { id, key } = await create(accountId);
  await run(accountId, 'holdFile', id);
  await run(accountId, 'releaseFile', id);
  t.is((await store.find(accountId, id))?.id, id);
  t.false((await listTrash(accountId)).includes(key));
});

test('a growing file consists of its segments, in order; after it is gone, further segments are trash', async (t) => {
  const accountId = randomUUID();
  const id = createFileId(Date.now(), daySeconds);
  await run(accountId, 'createGrowingFile', id, 'out.jsonl', 'batch_output');
  t.like(await store.findContent(accountId, id), { file: { byteLength: 0, isGrowing: true }, segments: [] });
  t.is(await run(accountId, 'appendSegment', id, 'batch-files/1', 5), 5);
  t.is(await run(accountId, 'appendSegment', id, 'batch-files/2', 7), 12);
  t.deepEqual((await store.findContent(accountId, id))?.segments, [
    { key: 'batch-files/1', byteLength: 5 },
    { key: 'batch-files/2', byteLength: 7 },
  ]);
  t.deepEqual(await readHeld(accountId), { count: '1', bytes: '12' });
  t.is(await run(accountId, 'finishFile', id), 12);
  t.like(await store.find(accountId, id), { byteLength: 12, isGrowing: false });
  t.is(await run(accountId, 'appendSegment', id, 'batch-files/3', 1), null);
  t.true(await store.delete(accountId, id));
  t.is(await run(accountId, 'finishFile', id), null);
  const trash = await listTrash(accountId);
  for (const key of ['batch-files/1', 'batch-files/2', 'batch-files/3']) t.true(trash.includes(key), key);
  t.deepEqual(await readHeld(accountId), {});
});

test('expired files are dropped, and their objects are in the trash, unless a batch holds them', async (t) => {
  const accountId = randomUUID();
  const shard = shardOf(accountId);
  const { id: fresh } = await create(accountId);
  const { id: held } = await create(accountId);
  await run(accountId, 'holdFile', held);
  // The time in an id cannot be changed, so the time of the sweep is.
  await redis.zadd(redisKeys.fileTimes(shard), 0, `${accountId} ${held}`);
  const old = await create(accountId, { createdAtMs: Date.now() - daySeconds * 1_000 });
  t.true((await store.findDue(shard)).isExpired);
  t.false(await store.expire(shard));
  t.false((await store.findDue(shard)).isExpired);
  t.true((await store.findDue(shard)).trashed.includes(old.key));
  t.is((await store.find(accountId, fresh))?.id, fresh);
  t.not(await store.findHeld(accountId, held), null);
  await store.forgetTrashed(shard, [old.key]);
  t.false((await listTrash(accountId)).includes(old.key));
});
