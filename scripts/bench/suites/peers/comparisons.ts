import { uniqueMark } from '../../harness/load/request-writer.ts';
import type { ResponseExpectation } from '../../harness/load/response-checks.ts';
import type { Scenario } from '../../harness/suite.ts';

/** The simulated vendors, each in a separate process. Chats are answered immediately, embeddings after as long as a real vendor takes. */
export const upstreams = {
  chat: { arguments: [], maxConcurrency: 1024 },
  embeddings256: { arguments: busyArguments(256), maxConcurrency: 8 },
  embeddings1536: { arguments: busyArguments(1536), maxConcurrency: 8 },
} as const;
export type UpstreamName = keyof typeof upstreams;

function busyArguments(dimensions: number): string[] {
  const pace = ['--per-call-ms', '30', '--per-input-ms', '0.2', '--max-concurrency', '8'];
  return ['--dimensions', String(dimensions), ...pace];
}

/** What the gateway is compared with: the other gateway, or the vendor without a gateway. */
export type Baseline = 'peer' | 'direct';

/** One row of the table. */
export interface Comparison extends Scenario {
  readonly baseline: Baseline;
  /**
   * `rate`: requests per second and CPU time, as multiples of the baseline's. `p50` and `first-token`: the latency that
   * the gateway adds for a single caller, in total or until the first byte of the stream.
   */
  readonly measures: 'rate' | 'p50' | 'first-token';
  readonly callers: number;
  readonly upstream: UpstreamName;
  /** Below `/v1`. */
  readonly path: string;
  /** The request's body without its model. */
  readonly body: Readonly<Record<string, unknown>>;
  readonly expects: ResponseExpectation;
}

const tokens = 50;
const messages = [{ role: 'user', content: 'How do I keep bread fresh for more than two days?' }];

const chat = {
  upstream: 'chat',
  path: '/chat/completions',
  body: { messages },
  expects: { kind: 'chat', tokens },
} as const;

const stream = {
  ...chat,
  body: { messages, stream: true },
  expects: { kind: 'stream', tokens },
} as const;

const input = `Passage ${uniqueMark}: the committee approved the budget for the new library.`;
const inputsPerLargeCall = 256;

function embeddings(dimensions: 256 | 1536, format: 'base64' | 'float', inputs = 1) {
  return {
    baseline: 'direct',
    measures: 'rate',
    callers: 512,
    upstream: `embeddings${dimensions}`,
    path: '/embeddings',
    body: {
      input: inputs === 1 ? input : Array.from({ length: inputs }, () => input),
      encoding_format: format,
    },
    expects: { kind: 'embeddings', inputs, dimensions, format },
  } as const;
}

const single = (dimensions: 256 | 1536, format: 'base64' | 'float'): Comparison => ({
  ...embeddings(dimensions, format),
  name: `peers-embeddings-${dimensions}-${format}`,
  title: `Embeddings, 512 callers, ${dimensions} dimensions, ${format}`,
});

const large = (dimensions: 256 | 1536): Comparison => ({
  ...embeddings(dimensions, 'base64', inputsPerLargeCall),
  callers: 32,
  name: `peers-embeddings-${dimensions}-large`,
  title: `Embeddings, 32 callers, ${inputsPerLargeCall} inputs, ${dimensions} dimensions`,
});

export const comparisons: readonly Comparison[] = [
  {
    ...chat,
    name: 'peers-chat',
    title: 'Chat, 32 callers',
    baseline: 'peer',
    measures: 'rate',
    callers: 32,
  },
  {
    ...stream,
    name: 'peers-stream',
    title: `Streams of ${tokens} tokens, 32 callers`,
    baseline: 'peer',
    measures: 'rate',
    callers: 32,
  },
  {
    ...stream,
    name: 'peers-first-token',
    title: 'Time to first token, one stream',
    baseline: 'direct',
    measures: 'first-token',
    callers: 1,
  },
  single(256, 'base64'),
  single(256, 'float'),
  single(1536, 'base64'),
  single(1536, 'float'),
  large(256),
  large(1536),
  {
    ...embeddings(256, 'base64'),
    name: 'peers-embeddings-alone',
    title: 'Embeddings, one caller, 256 dimensions',
    measures: 'p50',
    callers: 1,
  },
];
