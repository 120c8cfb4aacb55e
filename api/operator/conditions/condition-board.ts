import { conditionNames, type ConditionName } from '../../../shared/contract/condition-names.ts';
import type { ProcessMetrics } from '../../../shared/platform/metrics/process-metrics.ts';
import type { Logger } from '../../../shared/platform/runtime/logger.ts';
import { conditionLines, type Condition, type ConditionProblem, type Fields } from './conditions.ts';

/** What is noted about a problem when it begins. */
export interface ProblemDetails extends ConditionProblem {
  /** Which problem it is. Also in the line that tells its end. */
  readonly labels: Fields;
}

interface Entry {
  /** By key. */
  readonly problems: Map<string, ProblemDetails>;
  isKnown: boolean;
}

/** One of a condition's problems. */
export interface ProblemId {
  readonly name: ConditionName;
  /** Tells the problems of a condition apart. */
  readonly key: string;
}

/**
 * Which conditions this process sees. A condition is on while it has a problem, such as a queue without a worker. Each
 * problem is one log line when it begins and one when it ends.
 */
export class ConditionBoard {
  readonly #entries: ReadonlyMap<ConditionName, Entry>;
  readonly #log: Logger;

  constructor(metrics: ProcessMetrics, log: Logger) {
    this.#log = log;
    this.#entries = new Map(conditionNames.map((name) => [name, { problems: new Map(), isKnown: false }]));
    const gauge = metrics.gauge(
      {
        name: 'condition',
        help: 'Whether something is wrong that an operator should know, as this process sees it.',
        collect: () => {
          for (const [name, { problems }] of this.#entries)
            gauge.set({ condition: name }, problems.size > 0 ? 1 : 0);
        },
      },
      ['condition'],
    );
  }

  has({ name, key }: ProblemId): boolean {
    return this.#entryOf(name).problems.has(key);
  }

  /** The keys of a condition's problems. */
  keysOf(name: ConditionName): string[] {
    return [...this.#entryOf(name).problems.keys()];
  }

  begin({ name, key }: ProblemId, details: ProblemDetails): void {
    const entry = this.#entryOf(name);
    entry.isKnown = true;
    if (entry.problems.has(key)) return;
    entry.problems.set(key, details);
    this.#log.error({ condition: name, ...details.labels, ...details.fields }, conditionLines[name].begin);
  }

  /** @param line the log line, if it is not the condition's own */
  end({ name, key }: ProblemId, fields: Fields = {}, line = conditionLines[name].end): void {
    const { problems } = this.#entryOf(name);
    const problem = problems.get(key);
    if (problem === undefined) return;
    problems.delete(key);
    this.#log.info({ condition: name, ...problem.labels, ...fields }, line);
  }

  /** Notes that the process has looked long enough to know all problems of a condition. */
  settle(name: ConditionName): void {
    this.#entryOf(name).isKnown = true;
  }

  list(): Condition[] {
    return Array.from(this.#entries, ([name, { problems, isKnown }]) => {
      const all = [...problems.values()];
      return {
        name,
        isOn: isKnown ? all.length > 0 : null,
        sinceMs: all.length === 0 ? null : Math.min(...all.map(({ sinceMs }) => sinceMs)),
        problems: new Map(problems),
        subjects: [...new Set(all.map(({ subject }) => subject).filter((subject) => subject !== ''))],
      };
    });
  }

  #entryOf(name: ConditionName): Entry {
    return this.#entries.get(name)!;
  }
}
