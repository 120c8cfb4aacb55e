import { Agent, get } from 'node:http';
import type { Target } from '../../harness/stack/vendors.ts';
import { countError, summarizeLatency } from '../../harness/statistics.ts';
import { lookUpsPerSecond, type JobsPhase, type LookUps } from './jobs-plan.ts';

/** Maximum number of jobs that are looked up: a random sample in which each job so far is equally likely. */
const maxKnown = 1_000;
const timeoutMs = 10_000;

interface LookUpResults {
  readonly tookMs: number[];
  readonly failures: Record<string, number>;
}

/** Looks up jobs at a steady rate, regardless of response times. No look-up waits for the previous one. */
export class JobLookUps {
  phase: JobsPhase = 'placing';
  readonly #target: Target;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #known: string[] = [];
  readonly #results: Record<JobsPhase, LookUpResults> = {
    placing: { tookMs: [], failures: {} },
    running: { tookMs: [], failures: {} },
  };
  readonly #inFlight = new Set<Promise<void>>();
  readonly #timer: NodeJS.Timeout;

  constructor(target: Target) {
    this.#target = target;
    this.#timer = setInterval(() => this.#lookUp(), 1_000 / lookUpsPerSecond);
  }

  /** @param jobs the number of jobs so far, including this one */
  add(id: string, jobs: number): void {
    if (this.#known.length < maxKnown) {
      this.#known.push(id);
      return;
    }
    const index = Math.floor(Math.random() * jobs);
    if (index < maxKnown) this.#known[index] = id;
  }

  async end(): Promise<LookUps> {
    clearInterval(this.#timer);
    await Promise.all(this.#inFlight);
    this.#agent.destroy();
    const { placing, running } = this.#results;
    return {
      placing: summarizeLatency(placing.tookMs, placing.failures),
      running: summarizeLatency(running.tookMs, running.failures),
    };
  }

  #lookUp(): void {
    const id = this.#known[Math.floor(Math.random() * this.#known.length)];
    if (id === undefined) return;
    const { tookMs, failures } = this.#results[this.phase];
    const sentAtMs = performance.now();
    const lookUp = this.#get(id).then(
      () => {
        tookMs.push(performance.now() - sentAtMs);
      },
      (error: Error) => countError(failures, error.message),
    );
    this.#inFlight.add(lookUp);
    const removeInFlight = (): void => {
      this.#inFlight.delete(lookUp);
    };
    lookUp.then(removeInFlight, removeInFlight);
  }

  /** @throws Error if the response is not this job */
  async #get(id: string): Promise<void> {
    const { host, port, apiKeys } = this.#target;
    const headers = { authorization: `Bearer ${apiKeys[0]}` };
    const path = `/v1/jobs/${id}`;
    await new Promise<void>((resolve, reject) => {
      const request = get(
        { host, port, path, headers, agent: this.#agent, timeout: timeoutMs },
        (response) => {
          let text = '';
          response.setEncoding('utf8');
          response.on('data', (piece: string) => (text += piece));
          response.once('error', reject);
          response.once('end', () => {
            if (response.statusCode === 200 && text.includes(id)) resolve();
            else reject(new Error(`GET of a job: HTTP ${response.statusCode}: ${text.slice(0, 160)}`));
          });
        },
      );
      request.once('timeout', () =>
        request.destroy(new Error(`GET of a job: no response within ${timeoutMs / 1_000} s`)),
      );
      request.once('error', reject);
    });
  }
}
