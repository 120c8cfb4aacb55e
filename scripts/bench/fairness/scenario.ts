/** What the attacking and the measuring process must know about the stack. */
export interface FairnessTarget {
  readonly host: string;
  readonly port: number;
  readonly keys: {
    readonly attacker: string;
    readonly innocent: string;
    /** Key of an account without money. */
    readonly penniless: string;
  };
}

/** Sent to the attacking process, which replies `ready` once the attack is in place. */
export interface AttackPlan {
  readonly scenario: string;
  readonly target: FairnessTarget;
}

/** The vendor's response time, the same in every scenario. */
export const perCallMs = 50;
export const perInputMs = 0.2;

/** Concurrent calls of the upstreams for chats and embeddings. */
export const chatSlots = 64;
export const vectorSlots = 8;

export const models = {
  chat: 'fair-chat',
  /** On the same upstream, with responses that fill every buffer on their way. */
  wideChat: 'fair-wide-chat',
  /** The same, slow enough for the gateway to notice in time that nothing is reading. */
  steadyChat: 'fair-steady-chat',
  /** The worker fetches and checks its images. */
  vision: 'fair-vision',
  vectors: 'fair-vectors',
} as const;

/** Unreachable addresses: a connection to the first hangs, one to the second is refused at once. */
export const hangingHost = '1.2.3.4';
export const refusingHost = '1.2.3.5';

/** Latency of an innocent account's repeated request. */
export interface Waits {
  readonly probes: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Wrong responses, by reason. */
  readonly failures: Readonly<Record<string, number>>;
}

export interface FairnessResult {
  readonly scenario: FairnessScenario;
  readonly callMs: number;
  readonly alone: Waits;
  readonly beside: Waits;
  /** Memory of the processes before the attack and at its end. */
  readonly rssMb: Readonly<Record<'api' | 'redis', readonly [before: number, after: number]>>;
}

export interface FairnessScenario {
  readonly name: string;
  /** What one account does. */
  readonly attack: string;
  /** What another account does meanwhile. */
  readonly innocent: string;
  /**
   * Duration of one call, which a fair turn may have to wait for. If null, one request of the attacker is measured
   * instead.
   */
  readonly callMs: number | null;
  /** Maximum growth of the api or Redis, in scenarios that test this. */
  readonly mostGrowthMb?: Readonly<Partial<Record<'api' | 'redis', number>>>;
}

export const fairnessScenarios: readonly FairnessScenario[] = [
  {
    name: 'slots',
    attack: `${chatSlots} streams that nobody reads, as many as the upstream has slots`,
    innocent: 'a short streamed chat',
    callMs: perCallMs,
  },
  {
    name: 'dimensions',
    attack: '300 embedding requests at once, each with other `dimensions`',
    innocent: 'an embedding of one input',
    callMs: perCallMs + perInputMs,
  },
  {
    name: 'images',
    attack: 'eight requests at once with six pictures of 49 megapixels',
    innocent: 'a chat with a small picture',
    callMs: null,
  },
  {
    name: 'links',
    attack: '25 requests at once with links that hang',
    innocent: 'a chat with a link that is refused at once',
    callMs: perCallMs,
  },
  {
    name: 'replays',
    attack: '60 replays of an answer of 27 MB that nobody reads',
    innocent: 'a short streamed chat',
    callMs: perCallMs,
    mostGrowthMb: { api: 700 },
  },
  {
    name: 'slow-bodies',
    attack: 'seven uploads of 73 MB whose end comes by a byte every 20 s',
    innocent: 'embeddings with a body of 1 MB',
    callMs: perCallMs + 256 * perInputMs,
  },
  {
    name: 'penniless-bodies',
    attack: 'six bodies of 78 MB at once, of an account without money',
    innocent: 'a short streamed chat',
    callMs: perCallMs,
  },
  {
    name: 'kept-streams',
    attack: 'up to 24 kept streams of 6.5 MB, as many as are admitted',
    innocent: 'a short streamed chat with an Idempotency-Key',
    callMs: perCallMs,
    mostGrowthMb: { redis: 128 },
  },
  {
    name: 'merged-embeddings',
    attack: '16 embedding requests of 2048 inputs at once',
    innocent: 'an embedding of one input',
    callMs: perCallMs + 2_048 * perInputMs,
  },
];
