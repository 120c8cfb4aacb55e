import test from 'ava';
import {
  chooseWorkerCount,
  initialScaleState,
  type ScaleState,
  type Situation,
} from '../../../scripts/start/choose-worker-count.ts';
import type { Demand, QueueDemand } from '../../../scripts/start/read-demand.ts';

const settings = { min: 1, max: 8, upAfterMs: 5_000, downAfterMs: 30_000 };
const nothing: QueueDemand = { takeable: 0, takeableWaitingMs: 0, demand: 0, workers: 1, capacity: 64 };

function createDemand(chat: Partial<QueueDemand> = {}, image: Partial<QueueDemand> = {}): Demand {
  return { chat: { ...nothing, ...chat }, image: { ...nothing, ...image }, embedding: nothing };
}

/** Looks at the demand again and again, and does at once what was decided. */
class Scaled {
  workers = 1;
  starting = 0;
  #state: ScaleState = initialScaleState;
  #nowMs = 0;

  /** @returns the number of workers after this time, with looks once a second */
  run(seconds: number, demand: Demand | null): number {
    for (let i = 0; i < seconds; i++) this.#look(demand);
    return this.workers;
  }

  #look(demand: Demand | null): void {
    const { workers, starting } = this;
    const situation: Situation = { nowMs: this.#nowMs, demand, workers, starting };
    const decision = chooseWorkerCount(this.#state, situation, settings);
    this.#state = decision.state;
    this.workers = decision.workers;
    this.#nowMs += 1_000;
  }
}

test('one worker starts when work that it could take has waited long enough, and not before', (t) => {
  const scaled = new Scaled();
  t.is(scaled.run(60, createDemand({ takeable: 3, takeableWaitingMs: 4_900 })), 1);
  t.is(scaled.run(1, createDemand({ takeable: 3, takeableWaitingMs: 5_000 })), 2);
  t.is(new Scaled().run(60, createDemand({ takeable: 0, takeableWaitingMs: 60_000 })), 1);
});

test('no further worker starts until all are ready and have had time to take what waits', (t) => {
  const scaled = new Scaled();
  scaled.run(60, createDemand());
  const waiting = createDemand({ takeable: 3, takeableWaitingMs: 6_000 });
  t.is(scaled.run(1, waiting), 2);
  scaled.starting = 1;
  t.is(scaled.run(60, waiting), 2);
  scaled.starting = 0;
  t.is(scaled.run(5, waiting), 2);
  t.is(scaled.run(1, waiting), 3);
});

test('far behind, as many workers start as already run, but never more than the range allows', (t) => {
  const scaled = new Scaled();
  scaled.run(60, createDemand());
  const farBehind = createDemand({ takeable: 3, takeableWaitingMs: 10_000 });
  const counts = [1, 2, 3, 4, 5].map(() => {
    const count = scaled.run(1, farBehind);
    scaled.starting = 1;
    scaled.run(3, farBehind);
    scaled.starting = 0;
    scaled.run(5, farBehind);
    return count;
  });
  t.deepEqual(counts, [2, 4, 8, 8, 8]);
});

test('work that is too much for one worker more counts as far behind', (t) => {
  for (const [demand, expected] of [
    [192, 3],
    [193, 4],
  ] as const) {
    const scaled = new Scaled();
    scaled.workers = 2;
    const ofTwo = { workers: 2, capacity: 128 };
    // Both are needed, so none stops.
    scaled.run(60, createDemand({ demand: 100, ...ofTwo }));
    t.is(scaled.run(1, createDemand({ takeable: 9, takeableWaitingMs: 5_000, demand, ...ofTwo })), expected);
  }
});

test('without need, one worker stops after the other, and the last ones remain', (t) => {
  const scaled = new Scaled();
  scaled.workers = 3;
  const counts = [30, 1, 30, 1, 200].map((seconds) => scaled.run(seconds, createDemand()));
  t.deepEqual(counts, [3, 2, 2, 1, 1]);
});

test('a worker that could not be stopped is tried again at the next look', (t) => {
  const scaled = new Scaled();
  scaled.workers = 2;
  t.is(scaled.run(31, createDemand()), 1);
  scaled.workers = 2;
  t.is(scaled.run(1, createDemand()), 1);
});

test('all workers are needed while work waits, or while one less could not run it', (t) => {
  for (const demand of [
    createDemand({ takeable: 1, takeableWaitingMs: 1_000 }),
    createDemand({ demand: 65, takeable: 5, workers: 2, capacity: 128 }),
    createDemand({}, { demand: 65, workers: 2, capacity: 128 }),
  ]) {
    const scaled = new Scaled();
    scaled.workers = 2;
    t.is(scaled.run(29, createDemand()), 2);
    t.is(scaled.run(1, demand), 2);
    // From here on, the time without need begins again.
    t.is(scaled.run(30, createDemand()), 2);
    t.is(scaled.run(1, createDemand()), 1);
  }
});

test('work that is on its way to a worker does not count as need', (t) => {
  const scaled = new Scaled();
  scaled.workers = 2;
  t.is(scaled.run(31, createDemand({ takeable: 20, takeableWaitingMs: 200, workers: 2, capacity: 128 })), 1);
});

test('while the demand is not known, nothing starts or stops, and the time without need does not pass', (t) => {
  const scaled = new Scaled();
  scaled.workers = 2;
  t.is(scaled.run(29, createDemand()), 2);
  t.is(scaled.run(300, null), 2);
  t.is(scaled.run(30, createDemand()), 2);
  t.is(scaled.run(1, createDemand()), 1);
});
