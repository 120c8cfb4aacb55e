import { setTimeout as delay } from 'node:timers/promises';
import type { TestAccount } from '../support/stack.ts';
import { parseSse } from '../support/sse-events.ts';
import { toNano } from '../support/observe.ts';
import { CallerLoad, outcomeOf } from './caller-load.ts';

/** What a caller was billed according to a response that it received completely. */
export interface Receipt {
  readonly requestId: string;
  readonly accountId: string;
  readonly costNano: bigint;
  readonly free: boolean;
}

/** The load's catalog: each model responds after a moment, so that killing a process interrupts requests in flight. */
export function loadCatalog(vendorUrl: string): string {
  const route = (model: string): string => `routes: [{ upstream: vendor, model: "${model}" }]`;
  return `
upstreams:
  vendor: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [vendor-key] }
models:
  - { id: chat, type: chat, context: 8192, max_output_tokens: 512, pricing: { prompt: 7001, completion: 13003 }, ${route('gpt+slow-60')} }
  - { id: stream, type: chat, context: 8192, max_output_tokens: 512, pricing: { prompt: 7001, completion: 13003 }, ${route('gpt+drip-6')} }
  - { id: free-chat, type: chat, context: 8192, max_output_tokens: 512, pricing: { prompt: 11, completion: 17, free_requests: true }, ${route('gpt+slow-30')} }
  - { id: embedding, type: embedding, context: 8192, dimensions: { default: 1536 }, pricing: { in_cost_per_million: 3001 }, ${route('emb+slow-40')} }
  - { id: image, type: image, context: 8192, size: [1024x1024], pricing: { type: image, cost_per_image: 0.157 }, ${route('img+slow-90')} }
`;
}

interface LoadRequest {
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
}

const messages = [{ role: 'user', content: 'one two three four five six seven eight nine ten' }];
const streamed = { messages, stream: true, stream_options: { include_usage: true } };

/** Separate callers per kind of request, so that those waiting for a dead worker's lock do not hold up other kinds. */
const callers: readonly { readonly count: number; readonly requests: readonly LoadRequest[] }[] = [
  {
    count: 4,
    requests: [
      { path: '/v1/chat/completions', body: { model: 'chat', messages } },
      { path: '/v1/chat/completions', body: { model: 'chat', messages, max_tokens: 20 } },
      { path: '/v1/chat/completions', body: { model: 'free-chat', messages } },
    ],
  },
  {
    count: 4,
    requests: [
      { path: '/v1/chat/completions', body: { model: 'stream', ...streamed } },
      { path: '/v1/chat/completions', body: { model: 'free-chat', ...streamed } },
    ],
  },
  {
    count: 6,
    requests: [
      { path: '/v1/embeddings', body: { model: 'embedding', input: 'one two three' } },
      { path: '/v1/embeddings', body: { model: 'embedding', input: ['one', 'two three', 'four five six'] } },
    ],
  },
  { count: 2, requests: [{ path: '/v1/images/generations', body: { model: 'image', prompt: 'a red fox' } }] },
];

/** Far above the longest possible response time: a job waits for its dead worker's lock, at most twice. */
const responseTimeoutMs = 60_000;
const refusedPauseMs = 100;

/** Callers that send one request after another, record what they were billed, and retry after any failure. */
export class PaidLoad extends CallerLoad {
  readonly receipts: Receipt[] = [];
  /** How calls were cut. */
  readonly cuts: string[] = [];
  readonly #requestIds = new Set<string>();

  protected override listCallers(): (() => Promise<void>)[] {
    return callers.flatMap(({ count, requests }) =>
      Array.from({ length: count }, () => () => this.#call(requests)),
    );
  }

  async #call(requests: readonly LoadRequest[]): Promise<void> {
    const { urls, accounts } = this.options;
    const turn = this.nextTurn();
    const account = accounts[turn % accounts.length]!;
    const outcome = await this.#send(urls[turn % urls.length]!, account, requests[turn % requests.length]!);
    this.record(outcome);
    if (outcome !== '200') await delay(refusedPauseMs);
  }

  async #send(url: string, account: TestAccount, { path, body }: LoadRequest): Promise<string> {
    try {
      const response = await fetch(`${url}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${account.apiKey}` },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(responseTimeoutMs),
      });
      const text = await response.text();
      if (response.status !== 200) return String(response.status);
      const usage = readUsage(text, body['stream'] === true);
      if (usage === null) {
        this.cuts.push(`${path} of ${String(body['model'])} at ${url}: ${text.slice(-700)}`);
        return 'cut';
      }
      const requestId = response.headers.get('x-request-id') ?? '';
      if (this.#requestIds.has(requestId)) this.problems.push(`${requestId} was given to two requests`);
      this.#requestIds.add(requestId);
      this.receipts.push({
        requestId,
        accountId: account.id,
        costNano: toNano(usage.cost_request),
        free: usage.free_request === true,
      });
      return '200';
    } catch (error) {
      if ((error as Error).name === 'TimeoutError')
        this.problems.push(`${path} of ${String(body['model'])} got no response in ${responseTimeoutMs} ms`);
      const outcome = outcomeOf(error);
      const { message, cause } = error as Error;
      if (outcome === 'cut')
        this.cuts.push(`${path} of ${String(body['model'])} at ${url}: ${message}: ${String(cause)}`);
      return outcome;
    }
  }
}

interface Usage {
  readonly cost_request: number;
  readonly free_request: boolean | null;
}

/** Null if a stream did not reach its end. */
function readUsage(text: string, isStream: boolean): Usage | null {
  if (!isStream) return (JSON.parse(text) as { usage: Usage }).usage;
  const { events, isDone } = parseSse(text);
  if (!isDone) return null;
  return events.at(-1)!.usage as unknown as Usage;
}
