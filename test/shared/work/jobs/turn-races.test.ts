import test from 'ava';
import fc from 'fast-check';
import type { JobLine, JobTurn } from '../../../../shared/work/jobs/job-line.ts';
import { JobTurns } from '../../../../shared/work/jobs/job-turns-store.ts';
import { useRedis } from '../../../support/use-redis.ts';

const redis = useRedis(test);

const accounts = ['a', 'b', 'c'];
const account = fc.constantFrom(...accounts);
const weights = fc.record({ a: fc.nat(9), b: fc.nat(9), c: fc.nat(99) });

let queueCount = 0;
const createQueue = (): JobLine => ({ queue: 'chat', model: `model ${(queueCount += 1)}` });
const slotsFor = ({ model }: JobLine, slots: number): ReadonlyMap<string, number> =>
  new Map([[model, slots]]);

/** Changes of the accounts' lists and their delivery to the index, with arbitrary steps between the two. */
const steps = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant('put' as const), account }),
    fc.record({ kind: fc.constant('cancel' as const), account }),
    fc.record({ kind: fc.constant('take' as const), count: fc.integer({ min: 1, max: 4 }) }),
    fc.record({ kind: fc.constantFrom('pop' as const, 'deliver' as const), which: fc.nat(7) }),
  ),
  { maxLength: 40 },
);

type Step = typeof steps extends fc.Arbitrary<readonly (infer T)[]> ? T : never;

/** A model of the lists of waiting jobs in the shards, with the real index of accounts. */
class ShardModel {
  readonly turns: JobTurns;
  readonly modelQueue: JobLine;
  readonly lists = new Map(accounts.map((accountId) => [accountId, 0]));
  readonly taken: JobTurn[] = [];
  /** Calls that have not reached the index yet. */
  readonly undelivered: (() => Promise<void>)[] = [];

  constructor(turns: JobTurns, modelQueue: JobLine) {
    this.turns = turns;
    this.modelQueue = modelQueue;
  }

  change(accountId: string, by: number): void {
    this.lists.set(accountId, this.lists.get(accountId)! + by);
  }

  put(accountId: string): void {
    this.change(accountId, 1);
    this.undelivered.push(() => this.turns.add(this.modelQueue, accountId, 1));
  }

  /** @param isLate whether other calls may reach the index before the cancellation does */
  async cancel(accountId: string, isLate: boolean): Promise<void> {
    if (this.lists.get(accountId) === 0) return;
    this.change(accountId, -1);
    const drop = (): Promise<void> => this.turns.drop(this.modelQueue, accountId);
    if (isLate) this.undelivered.push(drop);
    else await drop();
  }

  async take(count: number): Promise<void> {
    this.taken.push(
      ...(await this.turns.take(this.modelQueue.queue, count, slotsFor(this.modelQueue, count))),
    );
  }

  pop(which: number): void {
    const [turn] = this.taken.splice(which % Math.max(1, this.taken.length), 1);
    if (turn === undefined) return;
    const isUsed = this.lists.get(turn.accountId)! > 0;
    if (isUsed) this.change(turn.accountId, -1);
    const remaining = this.lists.get(turn.accountId)!;
    this.undelivered.push(() => this.turns.settle(this.modelQueue.queue, turn, remaining, isUsed));
  }

  async deliver(which: number): Promise<void> {
    const [call] = this.undelivered.splice(which % Math.max(1, this.undelivered.length), 1);
    await call?.();
  }

  async play(steps: readonly Step[], isLate: boolean): Promise<void> {
    for (const step of steps) {
      if (step.kind === 'put') this.put(step.account);
      else if (step.kind === 'cancel') await this.cancel(step.account, isLate);
      else if (step.kind === 'take') await this.take(step.count);
      else if (step.kind === 'pop') this.pop(step.which);
      else await this.deliver(step.which);
    }
  }

  get waiting(): number {
    return [...this.lists.values()].reduce((sum, count) => sum + count, 0);
  }

  async repair(): Promise<void> {
    for (const [accountId, waiting] of this.lists)
      await this.turns.sync(this.modelQueue, accountId, 1, waiting);
  }

  /** Completes everything in progress, and then takes every job that the index knows. */
  async finish(): Promise<void> {
    do {
      while (this.taken.length > 0) this.pop(0);
      while (this.undelivered.length > 0) await this.deliver(0);
      await this.take(3);
    } while (this.taken.length > 0);
  }
}

test('no waiting job is lost, for any order of additions, turns, settlements and cancellations', async (t) => {
  await fc.assert(
    fc.asyncProperty(steps, async (steps) => {
      const model = new ShardModel(new JobTurns(redis()), createQueue());
      await model.play(steps, false);
      await model.finish();
      const { accounts } = await model.turns.outlook(model.modelQueue);
      return model.waiting === 0 && accounts.length === 0;
    }),
    { numRuns: 150 },
  );
  t.pass();
});

test('a repair restores accounts that were removed by a cancellation that reached the index late', async (t) => {
  await fc.assert(
    fc.asyncProperty(steps, async (steps) => {
      const model = new ShardModel(new JobTurns(redis()), createQueue());
      await model.play(steps, true);
      await model.repair();
      await model.finish();
      await model.repair();
      await model.finish();
      const { accounts } = await model.turns.outlook(model.modelQueue);
      return model.waiting === 0 && accounts.length === 0;
    }),
    { numRuns: 100 },
  );
  t.pass();
});

test('while others wait, an account gets at most its weighted share of turns plus one', async (t) => {
  const step = fc.oneof(
    fc.record({ account, jobs: fc.integer({ min: 1, max: 12 }) }),
    fc.record({ take: fc.integer({ min: 1, max: 8 }) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), weights, async (steps, extra) => {
      const turns = new JobTurns(redis());
      const modelQueue = createQueue();
      const weightOf = (accountId: string): number => 1 + extra[accountId as keyof typeof extra];
      const waiting = new Map(accounts.map((accountId) => [accountId, 0]));
      // For each pair, the turns of both since the later of them started to wait.
      const served = new Map<string, number>();
      const restart = (accountId: string): void => {
        for (const pair of served.keys()) if (pair.includes(accountId)) served.set(pair, 0);
      };
      for (const one of accounts) for (const other of accounts) served.set(`${one}${other}`, 0);
      for (const step of steps) {
        if ('jobs' in step) {
          if (waiting.get(step.account) === 0) restart(step.account);
          waiting.set(step.account, waiting.get(step.account)! + step.jobs);
          for (let i = 0; i < step.jobs; i++)
            await turns.add(modelQueue, step.account, weightOf(step.account));
          continue;
        }
        for (const { accountId } of await turns.take(
          modelQueue.queue,
          step.take,
          slotsFor(modelQueue, step.take),
        )) {
          for (const other of accounts) {
            if (other === accountId || waiting.get(other) === 0) continue;
            const ownTurns = served.get(accountId + other)! + 1;
            served.set(accountId + other, ownTurns);
            const allowedTurns =
              (served.get(other + accountId)! + 1) * (weightOf(accountId) / weightOf(other)) + 1;
            if (ownTurns > allowedTurns * 1.000_01) return false;
          }
          waiting.set(accountId, waiting.get(accountId)! - 1);
          if (waiting.get(accountId) === 0) restart(accountId);
        }
      }
      return true;
    }),
    { numRuns: 150 },
  );
  t.pass();
});

test('every waiting account is served before any other gets more than its weighted share of turns', async (t) => {
  await fc.assert(
    fc.asyncProperty(weights, async (extra) => {
      const turns = new JobTurns(redis());
      const modelQueue = createQueue();
      const allWeights = accounts.map((accountId) => 1 + extra[accountId as keyof typeof extra]);
      for (const [i, accountId] of accounts.entries())
        await turns.sync(modelQueue, accountId, allWeights[i]!, 1_000);
      const maxTurns =
        allWeights.reduce((sum, weight) => sum + Math.ceil(weight / Math.min(...allWeights)), 0) + 1;
      const first = await turns.take(modelQueue.queue, maxTurns, slotsFor(modelQueue, maxTurns));
      return new Set(first.map(({ accountId }) => accountId)).size === accounts.length;
    }),
    { numRuns: 30 },
  );
  t.pass();
});
