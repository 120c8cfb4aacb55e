import type { TestAccount } from '../support/stack.ts';

export interface LoadOptions {
  /** Of the api processes. */
  readonly urls: readonly string[];
  readonly accounts: readonly TestAccount[];
}

/** Callers who ask one thing after the other, whatever befalls them. */
export abstract class CallerLoad {
  /** Answers by their status, `cut` where the connection or the stream broke. */
  readonly outcomes = new Map<string, number>();
  /** What no death explains. */
  readonly faults: string[] = [];
  protected readonly options: LoadOptions;
  protected isStopping = false;
  #running: Promise<unknown> = Promise.resolve();
  #turn = 0;

  constructor(options: LoadOptions) {
    this.options = options;
  }

  start(): void {
    this.isStopping = false;
    this.#running = Promise.all(
      this.listCallers().map(async (call) => {
        while (!this.isStopping) await call();
      }),
    );
  }

  /** Resolves when the last caller has its answer. */
  async stop(): Promise<void> {
    this.isStopping = true;
    await this.#running;
  }

  /** What each caller does again and again. */
  protected abstract listCallers(): (() => Promise<void>)[];

  /** Calls go round all accounts and processes. */
  protected nextTurn(): number {
    this.#turn += 1;
    return this.#turn;
  }

  protected note(outcome: string): void {
    this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1);
  }
}
