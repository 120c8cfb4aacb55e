// decision 0094
import type { ChildProcess } from 'node:child_process';
import type { QueueName } from '../../shared/work/queue/job-kinds.ts';
import { GroupMetrics } from '../processes/group-metrics.ts';
import type { ProcessQuestions } from '../../shared/platform/child-processes/process-questions.ts';
import type { WorkerState } from '../../shared/operator/worker-state.ts';
import { chooseWorkerCount, initialScaleState, type ScaleSettings } from './choose-worker-count.ts';
import { formatMs, type ConsoleOutput } from './console-output.ts';
import type { Demand, QueueDemand } from './read-demand.ts';
import type { RunningPart } from './stack.ts';

const stateTimeoutMs = 1_000;
const defaultIntervalMs = 1_000;

/** Called whenever the process of a worker starts. */
export type OnSpawned = (child: ChildProcess) => void;

export interface WorkerPoolOptions extends ScaleSettings {
  /** Runs a worker, and runs it again if it dies. */
  readonly run: (name: string, onSpawned: OnSpawned) => Promise<RunningPart>;
  /** @throws Error that says why the demand is not known */
  readonly readDemand: () => Promise<Demand>;
  readonly output: Pick<ConsoleOutput, 'printEvent'>;
  /** Time between two looks at the demand. */
  readonly intervalMs?: number;
}

interface Member {
  readonly number: number;
  readonly name: string;
  part: RunningPart | null;
  /** Its process, and what to ask it with. */
  child: ChildProcess | null;
  questions: ProcessQuestions | null;
  /** Whether its process has been ready since it started. */
  hasBeenReady: boolean;
  isStopping: boolean;
}

/** The workers of `npm start`, if there may be several. */
export class WorkerPool {
  readonly metrics = new GroupMetrics('worker');
  readonly #options: WorkerPoolOptions;
  readonly #members: Member[] = [];
  #state = initialScaleState;
  #isDemandKnown = true;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
  }

  /** Starts the workers that always run. */
  async start(): Promise<void> {
    await Promise.all(Array.from({ length: this.#options.min }, () => this.#startOne()));
  }

  /** Whether at least one worker takes work. */
  async isReady(): Promise<boolean> {
    const states = await Promise.all(this.#running().map((member) => readState(member)));
    return states.some((state) => state?.isReady === true);
  }

  /** Starts and stops workers by demand, until the signal aborts. Does nothing if their number is fixed. */
  async scale(signal: AbortSignal): Promise<void> {
    const { min, max, intervalMs = defaultIntervalMs } = this.#options;
    if (min === max) return;
    while (!signal.aborted) {
      await this.#look(signal);
      await waitFor(intervalMs, signal);
    }
  }

  async #look(signal: AbortSignal): Promise<void> {
    const running = this.#running();
    const [demand] = await Promise.all([
      this.#readDemand(),
      ...running.map(async (member) => {
        if ((await readState(member))?.isReady === true) member.hasBeenReady = true;
      }),
    ]);
    if (signal.aborted) return;
    const situation = {
      nowMs: performance.now(),
      demand,
      workers: running.length,
      starting: running.filter(({ hasBeenReady }) => !hasBeenReady).length,
    };
    const decision = chooseWorkerCount(this.#state, situation, this.#options);
    this.#state = decision.state;
    if (decision.queue !== null) {
      const reason = describeWaiting(decision.queue, demand![decision.queue]);
      for (let i = running.length; i < decision.workers; i++) this.#startForDemand(reason);
    } else if (decision.workers < running.length) {
      await this.#stopIdle();
    }
  }

  async #readDemand(): Promise<Demand | null> {
    const { readDemand, output } = this.#options;
    try {
      const demand = await readDemand();
      if (!this.#isDemandKnown) output.printEvent('workers', 'the demand is known again', 'green');
      this.#isDemandKnown = true;
      return demand;
    } catch (error) {
      const text = `the demand is not known (${(error as Error).message}); their number stays at ${this.#running().length}`;
      if (this.#isDemandKnown) output.printEvent('workers', text, 'yellow');
      this.#isDemandKnown = false;
      return null;
    }
  }

  #startForDemand(reason: string): void {
    this.#startOne((name) => this.#options.output.printEvent(name, `starts: ${reason}`, 'green')).catch(
      (error: unknown) => {
        this.#options.output.printEvent('workers', `one cannot be started: ${String(error)}`, 'yellow');
      },
    );
  }

  async #startOne(onNamed: (name: string) => void = () => undefined): Promise<void> {
    const numbers = new Set(this.#members.map(({ number }) => number));
    let number = 1;
    while (numbers.has(number)) number += 1;
    const name = `worker ${number}`;
    const member: Member = {
      number,
      name,
      part: null,
      child: null,
      questions: null,
      hasBeenReady: false,
      isStopping: false,
    };
    this.#members.push(member);
    onNamed(name);
    member.part = await this.#options.run(name, (child) => {
      member.child = child;
      member.questions = this.metrics.add(child);
      member.hasBeenReady = false;
    });
  }

  /** Stops the newest worker that has no work. If all have some, nothing is stopped. */
  async #stopIdle(): Promise<void> {
    for (const member of this.#running().toSorted((a, b) => b.number - a.number)) {
      const { part, child } = member;
      if (part === null || child === null || !(await isIdle(member))) continue;
      // What it counted is still shown when it is gone.
      await this.metrics.refresh(child);
      if (!(await isIdle(member)) || member.child !== child) continue;
      member.isStopping = true;
      const { output, downAfterMs } = this.#options;
      output.printEvent(member.name, `stops: no need of it for ${formatSeconds(downAfterMs)}`, 'green');
      // What it takes in this moment is still finished, or handed back.
      part.stop().then(
        () => this.#members.splice(this.#members.indexOf(member), 1),
        (error: unknown) => output.printEvent(member.name, `cannot be stopped: ${String(error)}`, 'yellow'),
      );
      return;
    }
  }

  #running(): Member[] {
    return this.#members.filter(({ isStopping }) => !isStopping);
  }
}

/** @returns null if it does not respond */
async function readState({ questions }: Member): Promise<WorkerState | null> {
  return ((await questions?.ask('state', stateTimeoutMs)) ?? null) as WorkerState | null;
}

async function isIdle(member: Member): Promise<boolean> {
  return (await readState(member))?.running === 0;
}

async function waitFor(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
  });
}

const formatSeconds = (ms: number): string => (ms % 1_000 === 0 ? `${ms / 1_000} s` : formatMs(ms));

function describeWaiting(queue: QueueName, { takeable, takeableWaitingMs }: QueueDemand): string {
  const seconds = `${(takeableWaitingMs / 1_000).toFixed(1)} s`;
  return takeable === 1
    ? `1 ${queue} waits, for ${seconds}`
    : `${takeable} ${queue}s wait, the oldest for ${seconds}`;
}
