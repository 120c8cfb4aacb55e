import test from 'ava';
import { JobStore } from '../../../../shared/work/jobs/job-store.ts';
import type { RedisClient } from '../../../../shared/platform/redis/redis-client.ts';
import { openLedgerServices, type LedgerServices } from '../../../support/ledger-services.ts';
import { enqueueChat } from '../../../support/place-jobs.ts';

const model = 'demo-echo';

let services: LedgerServices;
test.before(async () => {
  services = await openLedgerServices();
});
test.after.always(() => services.close());

/** A Redis client that notes the name of each command. */
function createCounting(redis: RedisClient): { readonly redis: RedisClient; readonly commands: string[] } {
  const commands: string[] = [];
  const counting = new Proxy(redis, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]): unknown => {
        commands.push(String(name));
        return (value as (...given: unknown[]) => unknown).apply(target, args);
      };
    },
  });
  return { redis: counting, commands };
}

async function createJobs(
  count: number,
): Promise<{ readonly accountId: string; readonly ids: readonly string[] }> {
  const { id: accountId } = await services.createAccount({ balanceNano: 100_000_000_000n });
  const ids: string[] = [];
  for (let i = 0; i < count; i++) ids.push(await enqueueChat(services, accountId, model));
  return { accountId, ids };
}

test('a page of jobs is one script, however many jobs it has', async (t) => {
  const { accountId, ids } = await createJobs(30);
  const { redis, commands } = createCounting(services.redis);
  const store = new JobStore(redis);
  await store.list(accountId, null, { page: 1, pageSize: 1 });
  commands.length = 0;
  const page = await store.list(accountId, null, { page: 2, pageSize: 20 });
  t.deepEqual(commands, ['evalsha']);
  t.is(page.total, 30);
  t.deepEqual(
    page.jobs.map(({ rank }) => rank),
    [9, 8, 7, 6, 5, 4, 3, 2, 1, 0],
  );
  // Jobs of the same millisecond are in the order of their ids.
  const found = await store.findMany(accountId, ids);
  const sorted = found
    .map(({ job }) => [job.createdAtMs, job.id] as const)
    .sort(([at, id], [otherAt, otherId]) => at - otherAt || (id < otherId ? -1 : 1));
  t.deepEqual(
    page.jobs.map(({ job }) => [job.createdAtMs, job.id] as const),
    sorted.slice(0, 10).toReversed(),
  );
  t.is((await store.list(accountId, 'failed', { page: 1, pageSize: 20 })).total, 0);
});

test('jobs are found in the order of their ids, and those of other accounts are skipped', async (t) => {
  const [{ accountId, ids }, other] = await Promise.all([createJobs(3), createJobs(1)]);
  const store = new JobStore(services.redis);
  const asked = [ids[2]!, other.ids[0]!, ids[0]!];
  const found = await store.findMany(accountId, asked);
  t.deepEqual(
    found.map(({ job }) => job.id),
    [ids[2], ids[0]],
  );
  t.deepEqual((await store.find(accountId, ids[1]!))?.job.id, ids[1]);
});

test('positions of a page are recorded by one script, and never rise', async (t) => {
  const { accountId, ids } = await createJobs(3);
  const { redis, commands } = createCounting(services.redis);
  const store = new JobStore(redis);
  const report = async (...positions: number[]): Promise<number[]> =>
    await store.recordPositions(
      accountId,
      ids.map((id, i) => ({ id, position: positions[i]! })),
    );
  t.deepEqual(await report(5, 6, 7), [5, 6, 7]);
  commands.length = 0;
  t.deepEqual(await report(9, 4, 7), [5, 4, 7]);
  t.deepEqual(commands, ['evalsha']);
  const { jobs } = await store.list(accountId, null, { page: 1, pageSize: 3 });
  t.deepEqual(
    jobs.map(({ job }) => job.position),
    [7, 4, 5],
  );
  // A job that does not exist is not created by reporting its position.
  t.deepEqual(await store.recordPositions(accountId, [{ id: 'gone', position: 3 }]), [3]);
  t.is(await store.find(accountId, 'gone'), null);
});
