import { setTimeout as delay } from 'node:timers/promises';
import type { TestAccount } from '../support/stack.ts';

export interface LoadOptions {
  /** URLs of the api processes. */
  readonly urls: readonly string[];
  readonly accounts: readonly TestAccount[];
  /** How long each caller waits between two calls (ms). By default it leaves CPU time to the tests that run next to it. */
  readonly pauseMs?: number;
}

const defaultPauseMs = 150;

/** Callers that send one request after another, even after failures. */
export abstract class CallerLoad {
  /** Counts by response status; `refused` or `reset` if no process accepted it, `cut` if the connection or stream broke. */
  readonly outcomes = new Map<string, number>();
  /** Problems not caused by the death of a process. */
  readonly problems: string[] = [];
  protected readonly options: LoadOptions;
  protected isStopping = false;
  #running: Promise<unknown> = Promise.resolve();
  #turn = 0;

  constructor(options: LoadOptions) {
    this.options = options;
  }

  start(): void {
    this.isStopping = false;
    const { pauseMs = defaultPauseMs } = this.options;
    this.#running = Promise.all(
      this.listCallers().map(async (call) => {
        while (!this.isStopping) {
          await call();
          await delay(pauseMs);
        }
      }),
    );
  }

  /** Resolves when the last caller has its response. */
  async stop(): Promise<void> {
    this.isStopping = true;
    await this.#running;
  }

  /** The calls that each caller repeats. */
  protected abstract listCallers(): (() => Promise<void>)[];

  /** Distributes calls over all accounts and api processes. */
  protected nextTurn(): number {
    this.#turn += 1;
    return this.#turn;
  }

  protected record(outcome: string): void {
    this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1);
  }
}

/**
 * The outcome of a call that `fetch` has rejected. A connection that the operating system has made, but that a process had
 * not accepted when it stopped listening, is reset; no process has seen it.
 */
export function outcomeOf(error: unknown): 'refused' | 'reset' | 'cut' {
  const { message, cause } = error as Error;
  const { code } = (cause ?? {}) as { readonly code?: string };
  if (code === 'ECONNREFUSED') return 'refused';
  // The failure of a response that has begun has another message.
  return code === 'ECONNRESET' && message === 'fetch failed' ? 'reset' : 'cut';
}
