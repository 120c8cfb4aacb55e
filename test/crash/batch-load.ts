import { setTimeout as delay } from 'node:timers/promises';
import type { TestAccount } from '../support/stack.ts';

/** Creates batches while processes die, and reads their results, like a caller that retries until it has a response. */

const retryPauseMs = 200;
const callTimeoutMs = 30_000;
/** A process that the machine leaves without CPU time may count a body as late, or calls as too many. */
const retriedStatuses = new Set([408, 429]);

export interface BatchLine {
  readonly custom_id: string;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface BatchInput {
  /** In the metadata of its batches. */
  readonly name: string;
  readonly account: TestAccount;
  readonly endpoint: string;
  readonly isInline: boolean;
  readonly lines: readonly BatchLine[];
}

/** The fields of a batch that the tests read. */
export interface BatchBody {
  readonly id: string;
  readonly status: string;
  readonly cost: number;
  readonly reserved: number;
  readonly output_file_id?: string | null;
  readonly error_file_id?: string | null;
  readonly metadata: Readonly<Record<string, string>> | null;
  readonly request_counts: { readonly total: number; readonly completed: number; readonly failed: number };
}

export interface BatchResultLine {
  readonly id: string;
  readonly custom_id: string;
  readonly response: {
    readonly status_code: number;
    readonly body: {
      readonly usage?: { readonly cost_request: number };
      readonly error?: { readonly code: string; readonly message: string };
    };
  } | null;
  readonly error: { readonly code: string } | null;
}

interface Page<T> {
  readonly data: readonly (T & { readonly id: string })[];
  readonly has_more: boolean;
}

/** A caller of the batch API that sends a request again until it has a response, at another api each time. */
export class BatchCaller {
  /** How many calls were sent again. */
  retries = 0;
  readonly #urls: readonly string[];
  #turn = 0;

  constructor(urls: readonly string[]) {
    this.#urls = urls;
  }

  /** Without an Idempotency-Key, so a lost response leaves a second batch. */
  async create(batch: BatchInput): Promise<BatchBody> {
    const { account, name, endpoint, isInline, lines } = batch;
    const common = { endpoint, completion_window: '24h', metadata: { name } };
    const input = isInline ? { requests: lines } : { input_file_id: await this.upload(batch) };
    return await this.#callJson<BatchBody>(account, '/v1/batches', () => ({
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ...common, ...input }),
    }));
  }

  /** @returns the id of the input file */
  async upload({
    account,
    endpoint,
    lines,
  }: Pick<BatchInput, 'account' | 'endpoint' | 'lines'>): Promise<string> {
    const text = lines
      .map((line) => `${JSON.stringify({ method: 'POST', url: endpoint, ...line })}\n`)
      .join('');
    const { id } = await this.#callJson<{ readonly id: string }>(account, '/v1/files', () => {
      const form = new FormData();
      form.set('file', new Blob([text]), 'lines.jsonl');
      form.set('purpose', 'batch');
      return { method: 'POST', body: form };
    });
    return id;
  }

  /** All objects of a list, such as `/v1/batches`. */
  async list<T>(account: TestAccount, path: string): Promise<T[]> {
    const all: T[] = [];
    for (let after = ''; ;) {
      const page = await this.#callJson<Page<T>>(account, `${path}?limit=100${after}`);
      all.push(...page.data);
      if (!page.has_more) return all;
      after = `&after=${page.data.at(-1)!.id}`;
    }
  }

  async readResults(account: TestAccount, fileId: string | null | undefined): Promise<BatchResultLine[]> {
    if (fileId === null || fileId === undefined) return [];
    const text = await this.#call(account, `/v1/files/${fileId}/content`);
    return text
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as BatchResultLine);
  }

  async #callJson<T>(account: TestAccount, path: string, init?: () => RequestInit): Promise<T> {
    return JSON.parse(await this.#call(account, path, init)) as T;
  }

  /** @throws Error for a response that no retry changes */
  async #call({ apiKey }: TestAccount, path: string, init: () => RequestInit = () => ({})): Promise<string> {
    for (;;) {
      const { headers, ...options } = init();
      this.#turn += 1;
      try {
        const response = await fetch(`${this.#urls[this.#turn % this.#urls.length]!}${path}`, {
          ...options,
          headers: { ...(headers as Record<string, string>), authorization: `Bearer ${apiKey}` },
          signal: AbortSignal.timeout(callTimeoutMs),
        });
        const text = await response.text();
        if (response.ok) return text;
        if (response.status < 500 && !retriedStatuses.has(response.status))
          throw new RangeError(`${path}: ${response.status} ${text}`);
      } catch (error) {
        if (error instanceof RangeError) throw error;
      }
      this.retries += 1;
      await delay(retryPauseMs);
    }
  }
}
