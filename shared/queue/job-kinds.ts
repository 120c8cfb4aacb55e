import type { ChatRequest } from '../contract/chat.ts';
import type { Pricing } from '../contract/models.ts';

/** Queues of BullMQ, and the names that `--queues` takes. Interactive chats wait on the ready queue of `chat`. */
export const queueNames = ['chat', 'image', 'embedding'] as const;
export type QueueName = (typeof queueNames)[number];

/**
 * BullMQ's queues behind each of those names. Accounts that have much under way have one of their own, taken by runs of its
 * own: an account that sends a million texts does not stand before one that sends a single one.
 */
export const bullQueues = {
  image: ['image', 'image-bulk'],
  embedding: ['embedding', 'embedding-bulk'],
} as const;
export type BullQueueName = (typeof bullQueues)[keyof typeof bullQueues][number];

/** What settlement must know of a request; it travels with every job. */
export interface AdmittedRequest {
  readonly requestId: string;
  readonly accountId: string;
  /** The model's public id. */
  readonly model: string;
  /** The price at admission: a reloaded catalog changes nothing for work under way. */
  readonly pricing: Pricing;
  readonly priceVersion: string;
  readonly admittedAtMs: number;
  /** Work that has not started by then is dropped. */
  readonly deadlineAtMs: number;
  readonly userIp: string;
  /** By our own count, for what the vendor does not report. */
  readonly promptTokens: number;
  readonly user: string | null;
  /** Of the Idempotency-Key that stands for the request: its answer is kept beyond its socket. Null for most. */
  readonly claimHash: string | null;
  /** Of a durable job that a worker has taken: which attempt this is. Absent in all other requests. */
  readonly jobAttempt?: number;
  /** Of such a job: it holds a free request in place of money. */
  readonly isFree?: boolean;
}

/** Whether a request's answer is kept beyond its socket. */
export const isKept = ({
  claimHash,
  jobAttempt,
}: Pick<AdmittedRequest, 'claimHash' | 'jobAttempt'>): boolean =>
  claimHash !== null || jobAttempt !== undefined;

/** Reasoning that a vendor wants back with a tool call of the conversation. */
export interface RecalledReasoning {
  readonly messageIndex: number;
  readonly toolCallId: string;
  readonly value: unknown;
}

export interface ChatJob {
  readonly v: 1;
  readonly kind: 'chat';
  readonly request: AdmittedRequest;
  /** Validated, with `max_tokens` as large as the reservation affords. */
  readonly body: ChatRequest;
  /** The most that the prompt can count in any vocabulary; absent in a job of an earlier version. */
  readonly mostPromptTokens?: number;
  /** Completion tokens that were reserved for, of all choices together; absent in a job of an earlier version. */
  readonly reservedTokens?: number;
  /** What is kept of the reasoning behind earlier turns, counted at admission; absent where there is none. */
  readonly reasoning?: readonly RecalledReasoning[];
  readonly replyChannel: string;
  readonly attempt: number;
}

/** Parameters of OpenAI's image models beside those of the spec; null where the caller did not send one. */
export interface ImageOptions {
  readonly background: 'transparent' | 'opaque' | 'auto' | null;
  readonly moderation: 'low' | 'auto' | null;
  readonly outputFormat: 'png' | 'jpeg' | 'webp' | null;
  /** 0 to 100, for JPEG and WebP. */
  readonly outputCompression: number | null;
  readonly inputFidelity: 'high' | 'low' | null;
}

export const noImageOptions: ImageOptions = {
  background: null,
  moderation: null,
  outputFormat: null,
  outputCompression: null,
  inputFidelity: null,
};

/** Of a request for an image made from words alone, answered whole. */
export const wordsAlone = {
  inputs: [],
  inputLocs: [],
  mask: null,
  options: noImageOptions,
  partialImages: null,
} as const;

export interface ImageJob {
  readonly v: 1;
  readonly kind: 'image';
  /** Which one was asked for: the events of a stream are named by it. */
  readonly operation: 'createImage' | 'editImage';
  readonly request: AdmittedRequest;
  readonly replyChannel: string;
  readonly prompt: string;
  readonly negativePrompt: string | null;
  readonly n: number;
  readonly size: string;
  /** Whether the caller named that size, as against the catalog's default; absent in a job of an earlier version. */
  readonly isSizeAsked?: boolean;
  readonly quality: string | null;
  readonly style: string | null;
  readonly responseFormat: 'url' | 'b64_json';
  /** Images to edit or to go by, in the caller's order: https links or data URIs. None for words alone. */
  readonly inputs: readonly string[];
  /** Where each of them stands in the body that the caller sent: what is wrong with one is told of that place. */
  readonly inputLocs: readonly (readonly (string | number)[])[];
  /** Says which part of the first input may change; a link or a data URI, as those are. */
  readonly mask: string | null;
  readonly options: ImageOptions;
  /** Previews that are wanted of a streamed answer, 0 to 3; null where the answer is not streamed. */
  readonly partialImages: number | null;
}

/** One caller's part of a batch. */
export interface EmbeddingPart {
  readonly request: AdmittedRequest;
  readonly inputs: readonly string[];
  /** Tokens of each input, by our own count: how a merged call's usage is shared. */
  readonly inputTokens: readonly number[];
  /** Null where the model's own are wanted. */
  readonly dimensions: number | null;
}

/** A micro-batch: calls of one model that reached an api process together. */
export interface EmbeddingJob {
  readonly v: 1;
  readonly kind: 'embedding';
  readonly model: string;
  readonly replyChannel: string;
  readonly parts: readonly EmbeddingPart[];
}

export type Job = ChatJob | ImageJob | EmbeddingJob;

/** Where the JSON of a large job is, with what a worker accepts or ends it by before it has read that. */
export interface StoredJob {
  readonly v: 1;
  readonly stored: string;
  readonly bytes: number;
  readonly replyChannel: string;
  /** Those that the job is for. */
  readonly requests: readonly [AdmittedRequest, ...AdmittedRequest[]];
}

/** Those that a job is for: at least one. */
export function listRequests(job: ImageJob | EmbeddingJob): StoredJob['requests'] {
  if (job.kind === 'image') return [job.request];
  const [first, ...others] = job.parts.map(({ request }) => request);
  return [first!, ...others];
}

/** How an item lies on a queue: the job itself, or where it is stored when it is large. */
export type QueueItem<T extends Job> = T | StoredJob;

/** A large chat on the ready queue. */
export type StoredChat = StoredJob & Pick<ChatJob, 'attempt'>;

export type ChatItem = ChatJob | StoredChat;
