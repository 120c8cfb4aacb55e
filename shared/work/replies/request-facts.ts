/** What a worker did for a request, and what it cost. Sent shortly before the end of the response. */
export interface RequestFacts {
  /** The upstream that was called last; null if none was. */
  readonly upstream: string | null;
  /** How often vendors were called. */
  readonly attempts: number;
  /** From admission to the first call, including the wait for its slot (ms); null if no vendor was called. */
  readonly queueWaitMs: number | null;
  /** How long all calls took together (ms). */
  readonly upstreamMs: number;
  /** As reported to the caller: with the cached ones. */
  readonly promptTokens: number;
  readonly cachedTokens: number;
  /** With those of the reasoning. */
  readonly completionTokens: number;
  readonly reasoningTokens: number;
  readonly costNano: bigint;
  /** Whether it was one of the account's free requests. */
  readonly isFree: boolean;
  /** Why it failed, for the log; null on success, and if the request itself was wrong. */
  readonly reason: string | null;
}

type Encoded = readonly [
  upstream: string | null,
  attempts: number,
  queueWaitMs: number | null,
  upstreamMs: number,
  promptTokens: number,
  cachedTokens: number,
  completionTokens: number,
  reasoningTokens: number,
  costNano: string,
  isFree: 0 | 1,
  /** Workers of earlier versions leave it out. */
  reason?: string | null,
];

/** Encodes the payload of a `facts` frame. */
export function encodeFacts(facts: RequestFacts): string {
  const encoded: Encoded = [
    facts.upstream,
    facts.attempts,
    facts.queueWaitMs,
    facts.upstreamMs,
    facts.promptTokens,
    facts.cachedTokens,
    facts.completionTokens,
    facts.reasoningTokens,
    facts.costNano.toString(),
    facts.isFree ? 1 : 0,
    facts.reason,
  ];
  return JSON.stringify(encoded);
}

export function decodeFacts(payload: Buffer): RequestFacts {
  const encoded = JSON.parse(payload.toString()) as Encoded;
  // Destructuring would iterate over the array, which takes several times as long.
  return {
    upstream: encoded[0],
    attempts: encoded[1],
    queueWaitMs: encoded[2],
    upstreamMs: encoded[3],
    promptTokens: encoded[4],
    cachedTokens: encoded[5],
    completionTokens: encoded[6],
    reasoningTokens: encoded[7],
    costNano: BigInt(encoded[8]),
    isFree: encoded[9] === 1,
    reason: encoded[10] ?? null,
  };
}
