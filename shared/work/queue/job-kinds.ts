import type { ChatRequest } from '../../contract/chat.ts';
import type { AdmittedRequest } from '../../money/admitted-request.ts';
import type { ModelType } from '../../contract/models.ts';

/** The reply channel of durable jobs, which have no listener. */
export const noChannel = '';

/** Queue names, as passed to `--queues`. Interactive chats wait on the ready queue of `chat`, the others in BullMQ. */
export const queueNames = ['chat', 'image', 'embedding'] as const;
export type QueueName = (typeof queueNames)[number];

/** The queue for requests to models of this type. */
export function queueOfModel(type: ModelType): QueueName {
  return type === 'vision' ? 'chat' : type;
}

/**
 * The BullMQ queues behind each of those names. Accounts with much work running have a separate queue with its
 * own worker slots, so that an account that sends a million texts does not delay one that sends a single one.
 */
export const bullQueues = {
  image: ['image', 'image-bulk'],
  embedding: ['embedding', 'embedding-bulk'],
} as const;
export type BullQueueName = (typeof bullQueues)[keyof typeof bullQueues][number];

/** Reasoning that a vendor requires back with a tool call of the conversation. */
export interface LoadedReasoning {
  readonly messageIndex: number;
  readonly toolCallId: string;
  readonly value: unknown;
}

export interface ChatJob {
  readonly v: 1;
  readonly kind: 'chat';
  readonly request: AdmittedRequest;
  /** Validated, with `max_tokens` as large as the reservation allows. */
  readonly body: ChatRequest;
  /** Upper bound of the prompt's tokens in any vocabulary. */
  readonly mostPromptTokens: number;
  /** Completion tokens that were reserved, for all choices together. */
  readonly reservedTokens: number;
  /** The stored reasoning of earlier turns, included in the estimate at admission; absent if there is none. */
  readonly reasoning?: readonly LoadedReasoning[];
  /** Set if the response must have the older form of tools, because the request had it. */
  readonly wantsFunctionCall?: true;
  readonly replyChannel: string;
  readonly attempt: number;
}

/** A chat that has not been dispatched yet. */
export type NewChatJob = Omit<ChatJob, 'attempt' | 'replyChannel'>;

/** Parameters of OpenAI's image models beyond those in the spec; null if the caller did not send one. */
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

/** Fields of a request for an image made from text only, without streaming. */
export const textOnlyFields = {
  inputs: [],
  inputLocs: [],
  mask: null,
  options: noImageOptions,
  partialImages: null,
} as const;

export interface ImageJob {
  readonly v: 1;
  readonly kind: 'image';
  /** The requested operation, which determines the event names of a stream. */
  readonly operation: 'createImage' | 'editImage';
  readonly request: AdmittedRequest;
  readonly replyChannel: string;
  readonly prompt: string;
  readonly negativePrompt: string | null;
  readonly n: number;
  readonly size: string;
  /**
   * Whether the caller requested that size; otherwise it is the catalog's default. Absent in a job of an earlier
   * version.
   */
  readonly isSizeAsked?: boolean;
  readonly quality: string | null;
  readonly style: string | null;
  readonly responseFormat: 'url' | 'b64_json';
  /** Images to edit or use as references, in the caller's order: https links or data URIs. Empty for text only. */
  readonly inputs: readonly string[];
  /** Position of each input in the caller's body. Errors about an input point to it. */
  readonly inputLocs: readonly (readonly (string | number)[])[];
  /** Marks which part of the first input may change; a link or data URI, like the inputs. */
  readonly mask: string | null;
  readonly options: ImageOptions;
  /** Previews requested of a streamed response, 0 to 3; null if the response is not streamed. */
  readonly partialImages: number | null;
}

/** One caller's part of a batch. */
export interface EmbeddingPart {
  readonly request: AdmittedRequest;
  readonly inputs: readonly string[];
  /** Our own estimate of each input's tokens, used to split the usage of a merged call. */
  readonly inputTokens: readonly number[];
  /** Null for the model's default. */
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

/** A job on one of BullMQ's queues. */
export type QueuedJob = ImageJob | EmbeddingJob;

/**
 * A reference to the stored JSON of a large job, with the data that a worker needs to accept or end the job before it
 * has read it.
 */
export interface StoredJob {
  readonly v: 1;
  readonly stored: string;
  readonly bytes: number;
  readonly replyChannel: string;
  /** The requests that the job serves. */
  readonly requests: readonly [AdmittedRequest, ...AdmittedRequest[]];
}

/** The requests that a job serves: at least one. */
export function listRequests(job: QueuedJob): StoredJob['requests'] {
  if (job.kind === 'image') return [job.request];
  const [first, ...others] = job.parts.map(({ request }) => request);
  return [first!, ...others];
}

/** A queue item: the job itself, or a reference to where it is stored if it is large. */
export type QueueItem<T extends Job> = T | StoredJob;

/** A large chat on the ready queue. */
export type StoredChat = StoredJob & Pick<ChatJob, 'attempt'>;

export type ChatItem = ChatJob | StoredChat;
