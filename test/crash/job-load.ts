import { setTimeout as delay } from 'node:timers/promises';
import { hasEnded, respondAsync, type JobBody } from '../support/jobs.ts';
import type { TestAccount } from '../support/stack.ts';
import { CallerLoad, outcomeOf } from './caller-load.ts';

/** A durable job that was accepted with a 202 and therefore must not be lost. */
export interface JobTicket {
  readonly id: string;
  readonly account: TestAccount;
  /** The job's final state, once its caller has seen it; null until then. */
  end: Pick<JobBody, 'status' | 'cost_request' | 'free_request'> | null;
}

const messages = [{ role: 'user', content: 'one two three four five six seven eight nine ten' }];

const requests: readonly { readonly path: string; readonly body: object }[] = [
  { path: '/v1/chat/completions', body: { model: 'chat', messages, max_tokens: 20 } },
  { path: '/v1/chat/completions', body: { model: 'free-chat', messages } },
  { path: '/v1/embeddings', body: { model: 'embedding', input: ['one', 'two three', 'four five six'] } },
  { path: '/v1/images/generations', body: { model: 'image', prompt: 'a red fox' } },
];

const callersPerRequest = 2;
/** A caller polls its job every `pollIntervalMs` until the job ends, for at most `followMs`. Then it submits the next job. */
const pollIntervalMs = 150;
const followMs = 4_000;
/** One in this many jobs is cancelled as soon as it is enqueued, even if it is already running or done. */
const jobsPerCancellation = 8;
const callTimeoutMs = 30_000;
const refusedPauseMs = 100;

/** Callers that submit jobs, poll them at any api process, and sometimes cancel them. */
export class JobLoad extends CallerLoad {
  readonly tickets: JobTicket[] = [];

  protected override listCallers(): (() => Promise<void>)[] {
    return requests.flatMap((request) =>
      Array.from({ length: callersPerRequest }, () => () => this.#call(request)),
    );
  }

  async #call({ path, body }: (typeof requests)[number]): Promise<void> {
    const { accounts } = this.options;
    const account = accounts[this.nextTurn() % accounts.length]!;
    const response = await this.#send(account, path, { method: 'POST', body: JSON.stringify(body) });
    if (response?.status !== 202) {
      await delay(refusedPauseMs);
      return;
    }
    const ticket: JobTicket = { id: (JSON.parse(response.text) as JobBody).id, account, end: null };
    this.tickets.push(ticket);
    if (this.tickets.length % jobsPerCancellation === 0)
      await this.#send(account, `/v1/jobs/${ticket.id}`, { method: 'DELETE' });
    await this.#follow(ticket);
  }

  async #follow(ticket: JobTicket): Promise<void> {
    const untilMs = performance.now() + followMs;
    while (!this.isStopping && ticket.end === null && performance.now() < untilMs) {
      await delay(pollIntervalMs);
      const response = await this.#send(ticket.account, `/v1/jobs/${ticket.id}`, { method: 'GET' });
      if (response?.status === 404) this.problems.push(`the job ${ticket.id} was lost`);
      if (response?.status !== 200) continue;
      const job = JSON.parse(response.text) as JobBody;
      if (hasEnded(job)) ticket.end = job;
    }
  }

  /** Null if the connection broke. */
  async #send(
    { apiKey }: TestAccount,
    path: string,
    init: RequestInit,
  ): Promise<{ readonly status: number; readonly text: string } | null> {
    const { urls } = this.options;
    try {
      const response = await fetch(`${urls[this.nextTurn() % urls.length]!}${path}`, {
        ...init,
        headers: { 'content-type': 'application/json', authorization: `Bearer ${apiKey}`, ...respondAsync },
        signal: AbortSignal.timeout(callTimeoutMs),
      });
      const text = await response.text();
      this.record(String(response.status));
      return { status: response.status, text };
    } catch (error) {
      this.record(outcomeOf(error));
      if ((error as Error).name === 'TimeoutError')
        this.problems.push(`${init.method} ${path} got no response in ${callTimeoutMs} ms`);
      return null;
    }
  }
}
