// decision 0090
import type { Logger } from '../../../shared/platform/runtime/logger.ts';
import { runInBackground } from '../../../shared/platform/runtime/run-in-background.ts';
import type { QueueName } from '../../../shared/work/queue/job-kinds.ts';
import type { ConditionBoard } from './condition-board.ts';
import type { Condition } from './conditions.ts';
import { findProblems, type Problem, type ReadCondition } from './find-problems.ts';
import type { SystemReading } from './system-reading.ts';

export const defaultConditionIntervalMs = 5_000;
/** A problem begins or ends when this many readings in a row agree, so that one slow reply is not reported. */
const readingsToChange = 2;
/**
 * A refused key is called again when its cooldown ends, and only the next call shows whether it is still refused. So its
 * problem ends a minute later.
 */
const readingsToEnd: Partial<Readonly<Record<ReadCondition, number>>> = { upstream_key_refused: 12 };

export interface WatcherDeps {
  readonly board: ConditionBoard;
  readonly read: () => Promise<SystemReading>;
  /** Queues for which requests can be admitted. */
  readonly queuesInUse: () => ReadonlySet<QueueName>;
  readonly log: Logger;
  readonly intervalMs: number;
  /** Called after each reading. */
  readonly onLook: (conditions: readonly Condition[]) => void;
  /** Unix time in milliseconds; `Date.now` by default. */
  readonly nowMs?: () => number;
}

/** A problem that has begun or ended, but not for long enough. */
interface Change {
  readonly firstAtMs: number;
  count: number;
}

/** What is known about a condition. */
interface Progress {
  /** By key of the problem. */
  readonly changes: Map<string, Change>;
  /** How many readings said something about the condition. */
  readings: number;
}

/** Reads the state of the system every few seconds, and notes on the board which problems begin and end. */
export class ConditionWatcher {
  readonly #dependencies: WatcherDeps;
  readonly #nowMs: () => number;
  readonly #timer: NodeJS.Timeout;
  readonly #progress = new Map<ReadCondition, Progress>();
  #last: SystemReading | null = null;
  #isLooking = false;

  constructor(dependencies: WatcherDeps) {
    this.#dependencies = dependencies;
    this.#nowMs = dependencies.nowMs ?? Date.now;
    this.#timer = setInterval(
      () => runInBackground(this.look(), 'watching conditions', dependencies.log),
      dependencies.intervalMs,
    );
    this.#timer.unref();
  }

  /** The last reading; null if there is none yet. */
  get last(): SystemReading | null {
    return this.#last;
  }

  /** Reads once. The timer calls this. */
  async look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      const { read, board, onLook, queuesInUse } = this.#dependencies;
      this.#last = await read();
      const inUse = queuesInUse();
      const problems = findProblems(this.#last, (queue) => inUse.has(queue));
      for (const [name, found] of Object.entries(problems))
        if (found !== null) this.#compare(name as ReadCondition, found);
      onLook(board.list());
    } finally {
      this.#isLooking = false;
    }
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #compare(name: ReadCondition, found: readonly Problem[]): void {
    const { board } = this.#dependencies;
    const progress = this.#progress.get(name) ?? { changes: new Map<string, Change>(), readings: 0 };
    this.#progress.set(name, progress);
    const problems = new Map(found.map((problem) => [problem.key, problem]));
    const keys = new Set([...problems.keys(), ...board.keysOf(name)]);
    for (const key of progress.changes.keys()) if (!keys.has(key)) progress.changes.delete(key);
    for (const key of keys) {
      const problem = problems.get(key);
      const isOn = board.has({ name, key });
      if (isOn === (problem !== undefined)) {
        progress.changes.delete(key);
        continue;
      }
      const change = progress.changes.get(key) ?? { firstAtMs: this.#nowMs(), count: 0 };
      progress.changes.set(key, change);
      change.count += 1;
      if (change.count < ((isOn ? readingsToEnd[name] : undefined) ?? readingsToChange)) continue;
      progress.changes.delete(key);
      if (problem === undefined) board.end({ name, key });
      else board.begin({ name, key }, { ...problem, sinceMs: change.firstAtMs });
    }
    progress.readings += 1;
    // A problem that was there from the first reading on has begun by now.
    if (progress.readings >= readingsToChange) board.settle(name);
  }
}
