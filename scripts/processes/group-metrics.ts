// decision 0094
import type { ChildProcess } from 'node:child_process';
import { Counter, Gauge, Registry } from 'prom-client';
import { ProcessQuestions } from '../../shared/platform/child-processes/process-questions.ts';
import { countersOf, sumCounters, writeAggregated } from './aggregate-metrics.ts';
import { metricPrefix, type MetricsJson } from '../../shared/platform/metrics/process-metrics.ts';

/** Less than a scrape may take. */
const answerTimeoutMs = 2_000;
/** A process that has never answered is probably still starting, and has counted nothing. */
const firstAnswerTimeoutMs = 500;

interface Member {
  readonly questions: ProcessQuestions;
  /** When it was last asked; null if it never answered. */
  metrics: MetricsJson | null;
}

/**
 * The metrics of all processes of a group, in the process that started them. What a process has counted stays in the
 * sums when it ends or does not answer, so that they never decrease. Its gauges do not.
 */
export class GroupMetrics {
  readonly #members = new Map<ChildProcess, Member>();
  /** What the processes that have ended counted, one after the other. */
  #ended: Promise<MetricsJson> = Promise.resolve([]);
  readonly #own = new Registry();
  readonly #unanswered: Counter<'role'>;
  readonly #role: string;
  #writing: Promise<string> | null = null;

  constructor(role: 'api' | 'worker') {
    this.#role = role;
    const registers = [this.#own];
    const members = this.#members;
    const gauge: Gauge<'role'> = new Gauge({
      name: `${metricPrefix}processes`,
      help: 'Processes of the group that run.',
      labelNames: ['role'],
      registers,
      collect: () => gauge.set({ role }, members.size),
    });
    this.#unanswered = new Counter({
      name: `${metricPrefix}processes_unanswered_total`,
      help: 'How often a process of the group did not give its metrics in time.',
      labelNames: ['role'],
      registers,
    });
    this.#unanswered.inc({ role }, 0);
  }

  get contentType(): string {
    return this.#own.contentType;
  }

  /** Adds a process, until it exits. @returns what to ask it with */
  add(child: ChildProcess): ProcessQuestions {
    const member: Member = { questions: new ProcessQuestions(child), metrics: null };
    this.#members.set(child, member);
    child.once('exit', () => {
      this.#members.delete(child);
      const { metrics } = member;
      if (metrics !== null) this.#ended = this.#ended.then((ended) => sumCounters([ended, metrics]));
    });
    return member.questions;
  }

  /**
   * Asks a process for its metrics now, because it is about to be stopped.
   * @returns whether it has ever answered
   */
  async refresh(child: ChildProcess): Promise<boolean> {
    const member = this.#members.get(child);
    if (member === undefined) return false;
    await this.#ask(member);
    return member.metrics !== null;
  }

  /** All metrics in Prometheus's text format. Calls at the same time share one. */
  async write(): Promise<string> {
    this.#writing ??= this.#write().finally(() => (this.#writing = null));
    return await this.#writing;
  }

  async #write(): Promise<string> {
    // Read first: a process that exits after its answer must not be counted twice.
    const ended = await this.#ended;
    const metrics = await Promise.all([...this.#members.values()].map((member) => this.#ask(member)));
    return await writeAggregated([ended, ...metrics, await this.#own.getMetricsAsJSON()]);
  }

  async #ask(member: Member): Promise<MetricsJson> {
    const timeoutMs = member.metrics === null ? firstAnswerTimeoutMs : answerTimeoutMs;
    const answer = (await member.questions.ask('metrics', timeoutMs)) as MetricsJson | null;
    if (answer !== null) {
      member.metrics = answer;
      return answer;
    }
    if (member.metrics === null) return [];
    this.#unanswered.inc({ role: this.#role });
    return countersOf(member.metrics);
  }
}
