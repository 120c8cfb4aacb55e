import type { LatencySummary } from '../../harness/statistics.ts';

/** What the attacking and the measuring process need to know about the stack. */
export interface FairnessTarget {
  readonly host: string;
  readonly port: number;
  readonly keys: {
    readonly attacker: string;
    readonly innocent: string;
    /** Key of an account without money. */
    readonly penniless: string;
    /** Further accounts that attack in the same way. */
    readonly moreAttackers: readonly string[];
  };
}

/** Sent to the attacking process, which replies `ready` once the attack has reached its full effect. */
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
  /** On the same upstream, with responses that fill every buffer on their path. */
  wideChat: 'fair-wide-chat',
  /** The same, but slow enough for the gateway to notice in time that the client does not read. */
  steadyChat: 'fair-steady-chat',
  /** The worker fetches and checks its images. */
  vision: 'fair-vision',
  vectors: 'fair-vectors',
  /** The worker makes its input images and its outputs anew. */
  edits: 'fair-edits',
} as const;

/** Unreachable addresses: a connection to the first hangs, one to the second is refused immediately. */
export const hangingHost = '1.2.3.4';
export const refusingHost = '1.2.3.5';

export interface FairnessResult {
  readonly scenario: FairnessScenario;
  readonly callMs: number;
  readonly alone: LatencySummary;
  /** Latency during the attack. */
  readonly beside: LatencySummary;
  /** Memory of the processes before the attack and at its end. */
  readonly rssMb: Readonly<Record<'api' | 'redis', readonly [before: number, after: number]>>;
}

export interface FairnessScenario {
  readonly name: string;
  /** What one account does. */
  readonly attack: string;
  /** What another account does at the same time. */
  readonly innocent: string;
  /**
   * Duration of one call, for which even a fairly scheduled request may have to wait. If null, one request of the
   * attacker is measured instead.
   */
  readonly callMs: number | null;
  /** How many further accounts attack in the same way. */
  readonly moreAttackers?: number;
  /** Maximum growth of the api or Redis, in scenarios that test this. */
  readonly mostGrowthMb?: Readonly<Partial<Record<'api' | 'redis', number>>>;
}

export const fairnessScenarios: readonly FairnessScenario[] = [
  {
    name: 'slots',
    attack: `${chatSlots} unread streams, as many as the upstream has slots`,
    innocent: 'a short streamed chat',
    callMs: perCallMs,
  },
  {
    name: 'dimensions',
    attack: '300 concurrent embedding requests, each with different `dimensions`',
    innocent: 'an embedding of one input',
    callMs: perCallMs + perInputMs,
  },
  {
    name: 'images',
    attack: 'eight concurrent requests with six images of 49 megapixels',
    innocent: 'a chat with a small image',
    callMs: null,
  },
  {
    name: 'links',
    attack: '25 concurrent requests with links that hang',
    innocent: 'a chat with a link that is refused immediately',
    callMs: perCallMs,
  },
  {
    name: 'replays',
    attack: '60 unread replays of a response of 27 MB',
    innocent: 'a short streamed chat',
    callMs: perCallMs,
    mostGrowthMb: { api: 700 },
  },
  {
    name: 'slow-bodies',
    attack: 'seven uploads of 73 MB whose last bytes arrive one every 20 s',
    innocent: 'embeddings with a body of 1 MB',
    callMs: perCallMs + 256 * perInputMs,
  },
  {
    name: 'penniless-bodies',
    attack: 'six concurrent bodies of 78 MB, from an account without money',
    innocent: 'a short streamed chat',
    callMs: perCallMs,
  },
  {
    name: 'kept-streams',
    attack: 'up to 24 stored streams of 6.5 MB, as many as are admitted',
    innocent: 'a short streamed chat with an Idempotency-Key',
    callMs: perCallMs,
    mostGrowthMb: { redis: 128 },
  },
  {
    name: 'merged-embeddings',
    attack: '16 concurrent embedding requests of 2048 inputs',
    innocent: 'an embedding of one input',
    callMs: perCallMs + 2_048 * perInputMs,
  },
  {
    name: 'job-lists',
    attack: '120 connections that read pages of 100 jobs',
    innocent: 'a short streamed chat',
    callMs: perCallMs,
  },
  {
    name: 'job-lists-of-three',
    attack: '120 connections of each of three accounts that read pages of 100 jobs',
    innocent: 'a short streamed chat',
    callMs: perCallMs,
    moreAttackers: 2,
  },
  {
    name: 'request-logs',
    attack: '120 connections that read pages of 300 rows of the request log',
    innocent: 'a short streamed chat',
    callMs: perCallMs,
  },
  {
    name: 'request-logs-of-three',
    attack: '120 connections of each of three accounts that read pages of 300 rows of the request log',
    innocent: 'a short streamed chat',
    callMs: perCallMs,
    moreAttackers: 2,
  },
  {
    name: 'queries',
    attack: 'four connections of a caller without a key, with queries of 7600 parameters',
    innocent: 'a short streamed chat',
    callMs: perCallMs,
  },
  {
    name: 'preferences',
    attack: 'eight connections of an account without money, with a Prefer header of 15 KB',
    innocent: 'a short streamed chat',
    callMs: perCallMs,
  },
  {
    name: 'frames',
    attack: 'two accounts with four edits and four chats each, with a WebP of 5 MB and 110 000 frames',
    innocent: 'an image edit of a small image',
    callMs: perCallMs,
    moreAttackers: 1,
  },
  {
    name: 'big-webp',
    attack: 'two accounts with three edits each, with a WebP of 49 megapixels and 17 MB',
    innocent: 'an image edit of a small image',
    callMs: perCallMs,
    moreAttackers: 1,
  },
];
