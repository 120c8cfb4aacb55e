import test from 'ava';
import { JobPolls } from '../../../api/jobs/job-polls.ts';
import { noEstimate } from '../../../shared/work/jobs/present-job.ts';
import { describeNewJob } from '../../../shared/work/jobs/job-record.ts';
import type { JobView } from '../../../api/jobs/job-text.ts';

const view = (accountId: string, id: string, attempts = 0): JobView => ({
  job: {
    ...describeNewJob(
      {
        id,
        accountId,
        queue: 'chat',
        model: 'model',
        operation: 'chat.completions',
        timeoutMs: 60_000,
        format: null,
        webhookUrl: null,
      },
      0,
      60_000,
    ),
    attempts,
  },
  estimate: noEstimate,
});

test('128 simultaneous polls of one account are look-ups of at most 100 jobs each, and accounts share none', async (t) => {
  const lookUps: { accountId: string; ids: readonly string[] }[] = [];
  const polls = new JobPolls(async (accountId, ids) => {
    lookUps.push({ accountId, ids });
    return ids.filter((id) => id !== 'unknown').map((id) => view(accountId, id));
  });
  const ids = Array.from({ length: 128 }, (_, i) => `job ${i}`);
  const views = await Promise.all([
    ...ids.map((id) => polls.poll('ann', id)),
    // Several callers may follow the same job.
    polls.poll('ann', 'job 0'),
    polls.poll('bob', 'job 0'),
    polls.poll('ann', 'unknown'),
  ]);
  t.deepEqual(
    views.map((one) => one && `${one.job.accountId} ${one.job.id}`),
    [...ids.map((id) => `ann ${id}`), 'ann job 0', 'bob job 0', null],
  );
  t.deepEqual(lookUps.map(({ accountId, ids: { length } }) => `${accountId} ${length}`).toSorted(), [
    'ann 100',
    'ann 29',
    'bob 1',
  ]);
});

test('a poll never gets a state from before it was called', async (t) => {
  let attempts = 0;
  const finish: (() => void)[] = [];
  const polls = new JobPolls(async (accountId, ids) => {
    const views = ids.map((id) => view(accountId, id, attempts));
    await new Promise<void>((resolve) => finish.push(resolve));
    return views;
  });
  const first = polls.poll('ann', 'job');
  while (finish.length === 0) await new Promise((resolve) => setImmediate(resolve));
  attempts = 1;
  const second = polls.poll('ann', 'job');
  finish[0]!();
  t.is((await first)?.job.attempts, 0);
  while (finish.length === 1) await new Promise((resolve) => setImmediate(resolve));
  finish[1]!();
  t.is((await second)?.job.attempts, 1);
});

test('a failed look-up fails the polls that wait for it, and no later ones', async (t) => {
  let failures = 0;
  const polls = new JobPolls(async (accountId, ids) => {
    if (failures === 0) {
      failures += 1;
      throw new Error('away');
    }
    return ids.map((id) => view(accountId, id));
  });
  for (const result of await Promise.allSettled([polls.poll('ann', 'a'), polls.poll('ann', 'b')]))
    t.is(result.status, 'rejected');
  t.is((await polls.poll('ann', 'a'))?.job.id, 'a');
});
