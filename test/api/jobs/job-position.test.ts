import test from 'ava';
import fc from 'fast-check';
import type { JobLine } from '../../../shared/work/jobs/job-line.ts';
import type { JobOutlook, WaitingAccount } from '../../../shared/work/jobs/job-outlook.ts';
import { estimatePosition } from '../../../api/jobs/job-position.ts';
import { JobTurns } from '../../../shared/work/jobs/job-turns-store.ts';
import { useRedis } from '../../support/use-redis.ts';

const redis = useRedis(test);

const backlog = fc.record({
  weight: fc.oneof(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 100 })),
  before: fc.nat(6),
  after: fc.nat(9),
});

let queueCount = 0;

test('the position is exactly the number of jobs that start earlier, if no more jobs are added', async (t) => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(backlog, { minLength: 1, maxLength: 8 }),
      fc.nat(12),
      fc.nat(12),
      async (backlogs, firstTakeCount, laterTakeCount) => {
        const turns = new JobTurns(redis());
        const modelQueue: JobLine = { queue: 'chat', model: `model ${(queueCount += 1)}` };
        const take = async (count: number): Promise<string[]> => {
          const taken = await turns.take(modelQueue.queue, count, new Map([[modelQueue.model, count]]));
          return taken.map(({ accountId }) => accountId);
        };
        const addAll = async (which: 'before' | 'after'): Promise<void> => {
          for (const [i, account] of backlogs.entries())
            for (let n = 0; n < account[which]; n++)
              await turns.add(modelQueue, `account ${i}`, account.weight);
        };
        await addAll('before');
        await take(firstTakeCount);
        await addAll('after');
        await take(laterTakeCount);
        const outlook = await turns.outlook(modelQueue);
        const order = await take(1_000);
        const ranks = new Map<string, number>();
        for (const [position, accountId] of order.entries()) {
          const rank = ranks.get(accountId) ?? 0;
          ranks.set(accountId, rank + 1);
          const estimate = estimatePosition(outlook, accountId, rank);
          if (estimate !== position) return false;
        }
        return true;
      },
    ),
    { numRuns: 120 },
  );
  t.pass();
});

const outlookOf = (accounts: readonly WaitingAccount[], virtualTime = 0): JobOutlook => ({
  virtualTime,
  accounts,
  running: 0,
  runningMs: [],
  ended: [],
  serviceMs: null,
});

test('an account that is not in the outlook is treated as if it started to wait now', (t) => {
  const others = ['b', 'c'].map((accountId) => ({ accountId, waiting: 5, weight: 1, startTag: 1_000_000 }));
  const outlook = outlookOf(others, 1_000_000);
  t.is(estimatePosition(outlook, 'a', 0), 0);
  t.is(estimatePosition(outlook, 'd', 0), 2);
  t.is(estimatePosition(outlook, 'd', 1), 5, 'two jobs of each other account, and one of this account');
});

test('a job added after the outlook was read starts after all earlier jobs of its account', (t) => {
  const outlook = outlookOf([
    { accountId: 'a', waiting: 2, weight: 1, startTag: 0 },
    { accountId: 'b', waiting: 3, weight: 1, startTag: 0 },
  ]);
  t.is(estimatePosition(outlook, 'a', 4), 7);
});
