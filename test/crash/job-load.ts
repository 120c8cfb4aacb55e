import { setTimeout as delay } from 'node:timers/promises';
import { hasEnded, respondAsync, type JobBody } from '../support/jobs.ts';
import type { TestAccount } from '../support/stack.ts';
import { CallerLoad } from './caller-load.ts';

/** A durable job that was answered with 202: from then on it must not be lost. */
export interface JobTicket {
  readonly id: string;
  readonly account: TestAccount;
  /** How it ended, as its caller was told first; null until then. */
  end: Pick<JobBody, 'status' | 'cost_request' | 'free_request'> | null;
}

const messages = [{ role: 'user', content: 'one two three four five six seven eight nine ten' }];

const asks: readonly { readonly path: string; readonly body: object }[] = [
  { path: '/v1/chat/completions', body: { model: 'chat', messages, max_tokens: 20 } },
  { path: '/v1/chat/completions', body: { model: 'free-chat', messages } },
  { path: '/v1/embeddings', body: { model: 'embedding', input: ['one', 'two three', 'four five six'] } },
  { path: '/v1/images/generations', body: { model: 'image', prompt: 'a red fox' } },
];

const callersPerAsk = 2;
/** A caller comes back for its job as often and for as long as this; then it leaves it, and hands over the next. */
const lookIntervalMs = 150;
const followMs = 4_000;
/** One of so many is cancelled as soon as it was placed, whatever has become of it by then. */
const jobsPerCancellation = 8;
const callTimeoutMs = 30_000;
const refusedPauseMs = 100;

/** Callers who hand work over, look how it goes on, at any api process, and sometimes cancel it. */
export class JobLoad extends CallerLoad {
  readonly tickets: JobTicket[] = [];

  protected override listCallers(): (() => Promise<void>)[] {
    return asks.flatMap((ask) => Array.from({ length: callersPerAsk }, () => () => this.#call(ask)));
  }

  async #call({ path, body }: (typeof asks)[number]): Promise<void> {
    const { accounts } = this.options;
    const account = accounts[this.nextTurn() % accounts.length]!;
    const answer = await this.#send(account, path, { method: 'POST', body: JSON.stringify(body) });
    this.note(answer === null ? 'cut' : String(answer.status));
    if (answer?.status !== 202) {
      await delay(refusedPauseMs);
      return;
    }
    const ticket: JobTicket = { id: (JSON.parse(answer.text) as JobBody).id, account, end: null };
    this.tickets.push(ticket);
    if (this.tickets.length % jobsPerCancellation === 0)
      await this.#send(account, `/v1/jobs/${ticket.id}`, { method: 'DELETE' });
    await this.#follow(ticket);
  }

  async #follow(ticket: JobTicket): Promise<void> {
    const untilMs = performance.now() + followMs;
    while (!this.isStopping && ticket.end === null && performance.now() < untilMs) {
      await delay(lookIntervalMs);
      const answer = await this.#send(ticket.account, `/v1/jobs/${ticket.id}`, { method: 'GET' });
      if (answer?.status === 404) this.faults.push(`the job ${ticket.id} was lost`);
      if (answer?.status !== 200) continue;
      const job = JSON.parse(answer.text) as JobBody;
      if (hasEnded(job)) ticket.end = job;
    }
  }

  /** Null where the connection broke. */
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
      return { status: response.status, text: await response.text() };
    } catch (error) {
      if ((error as Error).name === 'TimeoutError')
        this.faults.push(`${init.method} ${path} got no answer in ${callTimeoutMs} ms`);
      return null;
    }
  }
}
