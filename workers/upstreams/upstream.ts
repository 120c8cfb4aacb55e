import type { ImageOptions } from '../../shared/queue/job-kinds.ts';

/**
 * The interface that every dialect implements. An upstream translates one request and its response. It knows
 * nothing of money or Redis, and never retries: routing decides that.
 */

/** The candidate chosen for a call: the model's name at the upstream, and the key to use there. */
export interface UpstreamTarget {
  /** The model's name as the upstream knows it. */
  readonly model: string;
  readonly apiKey: string | null;
  /** Request fields that this route or upstream does not accept; they are left out. */
  readonly drops: ReadonlySet<string>;
  /**
   * How the vendor's model is told to reason: by a `budget` of tokens, or by an `effort`. Null leaves it to the
   * dialect, which decides by the model's name.
   */
  readonly thinking: 'budget' | 'effort' | null;
  /** Whether the vendor gets image URLs, or the image bytes, which we fetch. */
  readonly imageUrls: 'pass' | 'fetch';
}

export interface CallContext {
  readonly signal: AbortSignal;
  /**
   * The account whose turns are used when a large call would block the event loop. Upstreams know nothing else
   * about it.
   */
  readonly accountId: string;
  readonly log: UpstreamLogger;
  /** Loads the media that the caller's messages refer to. */
  readonly media: MediaLoader;
  /** The reasoning saved from earlier turns of this conversation (`remember` events), as counted at admission. */
  readonly recalled: Recalled;
  /** Called when a request is written to the vendor. From then on the vendor may charge for it. */
  readonly onSent?: () => void;
  /** Called when a vendor rejects a request that was written to it. The vendor does not charge for that. */
  readonly onRefused?: () => void;
  /** Aborted when nobody waits for the response any more. Calls in progress go on, and no further one begins. */
  readonly awaited?: AbortSignal;
  /** Acquires a slot for a call in parallel with the one in progress. If omitted, such calls need no slot. */
  readonly acquireFurther?: AcquireFurther;
  /** Called when one of several calls has ended, with the progress from 0 to 1. */
  readonly onProgress?: (done: number) => void;
}

/**
 * Waits for another slot of the candidate that is being called.
 * @returns null if there is none in time, or if the signal is aborted
 */
export type AcquireFurther = (signal: AbortSignal) => Promise<FurtherSlot | null>;

export interface FurtherSlot {
  /**
   * Releases the slot.
   * @param outcome of its call; null if none was made
   */
  release(outcome: PromiseSettledResult<unknown> | null): void;
}

/** The saved JSON values, by `nameCall`. */
export type Recalled = ReadonlyMap<string, unknown>;

/** Names a tool call within a conversation, because some vendors reuse the same ID in every response. */
export function nameCall(messageIndex: number, toolCallId: string): string {
  return `${messageIndex}:${toolCallId}`;
}

/** Bytes from a caller that have been inspected: `mediaType` is the detected type, not the claimed one. */
export interface LoadedMedia {
  readonly mediaType: string;
  readonly base64: string;
}

export interface MediaLoader {
  /**
   * Waits until there is memory for all of these images, at most until the request's deadline. Call this before
   * loading several. Rejects with AppError `deadline_exceeded`, or with the signal's reason.
   */
  reserve(urls: readonly string[], signal: AbortSignal): Promise<void>;
  /**
   * Loads an image from an https URL (fetched) or a data URI, and checks that it is PNG, JPEG, WebP or GIF.
   * Each URL is loaded once per request. Rejects with AppError `unsafe_url` or `validation_failed`, or with the
   * signal's reason.
   */
  loadImage(url: string, signal: AbortSignal): Promise<LoadedMedia>;
}

export interface UpstreamLogger {
  warn(fields: object, message: string): void;
  debug(fields: object, message: string): void;
}

/**
 * Tokens as the vendor reported them; null if it reported nothing. `details` are parts of the totals, never
 * additions.
 */
export interface UpstreamUsage {
  readonly promptTokens: number | null;
  readonly completionTokens: number | null;
  readonly cachedTokens: number | null;
  readonly cacheWriteTokens: number | null;
  readonly reasoningTokens: number | null;
  readonly webSearchTokens: number | null;
}

export const noUpstreamUsage: UpstreamUsage = {
  promptTokens: null,
  completionTokens: null,
  cachedTokens: null,
  cacheWriteTokens: null,
  reasoningTokens: null,
  webSearchTokens: null,
};

export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter';

/** A chat request in OpenAI's format, as the caller sent it after validation, with `max_tokens` already bounded. */
export type ChatBody = Readonly<Record<string, unknown>> & {
  readonly messages: readonly ChatMessage[];
};

export interface ChatMessage {
  readonly role: string;
  readonly content?: string | readonly Record<string, unknown>[] | null;
  readonly tool_calls?: readonly Record<string, unknown>[] | null;
  readonly tool_call_id?: string | null;
}

/**
 * One step of a chat response, streamed or not. `delta` objects have OpenAI's `choices[].delta` format. Every
 * chat call is consumed as a stream of these; an upstream with a whole response yields one delta per choice.
 */
export type ChatEvent =
  | {
      readonly type: 'delta';
      readonly index: number;
      readonly delta: Readonly<Record<string, unknown>>;
      readonly logprobs?: unknown;
    }
  | {
      readonly type: 'finish';
      readonly index: number;
      readonly finishReason: FinishReason;
      readonly nativeFinishReason: string | null;
    }
  /** Pages that the response is based on, in the order in which it names them; may come several times. */
  | { readonly type: 'sources'; readonly index: number; readonly sources: readonly WebSource[] }
  /**
   * What the vendor requires back with the conversation but clients drop, by the ID of a tool call of this
   * choice. Other choices may use the same ID. It comes before the end of the choice.
   */
  | { readonly type: 'remember'; readonly index: number; readonly toolCallId: string; readonly value: object }
  /**
   * Reported as soon as any count is known, and again when one changes; the last event counts. A partial report
   * does not cover everything generated before it, such as Anthropic's first one, which says `output_tokens:
   * 1`.
   */
  | { readonly type: 'usage'; readonly usage: UpstreamUsage; readonly isPartial?: true };

/** A web page that a search found. */
export interface WebSource {
  readonly url: string;
  readonly title: string | null;
}

export interface EmbeddingCall {
  readonly inputs: readonly string[];
  /** Set only if the caller asked for something other than the model's default. */
  readonly dimensions: number | null;
  /** Set only if all inputs of the call are from one caller. */
  readonly user: string | null;
}

export interface EmbeddingAnswer {
  /** Float32 little-endian, inputs in order, `dimensions * 4` bytes each. */
  readonly vectors: Buffer;
  readonly dimensions: number;
  /** Indices of the vectors that contain non-finite numbers. Their inputs have no valid response. */
  readonly broken: readonly number[];
  readonly promptTokens: number | null;
  /**
   * Returns the buffer to its pool. Call it once nothing refers to the vectors any more. Null if the buffer is
   * not pooled.
   */
  readonly release: (() => void) | null;
}

/** A caller's image, re-encoded from its pixels, so that it contains nothing but the image. */
export interface InputImage {
  readonly bytes: Buffer;
  readonly contentType: 'image/png' | 'image/jpeg' | 'image/webp';
  readonly width: number;
  readonly height: number;
}

/** A preview of a streamed image, as the vendor sent it. */
export interface PartialImage {
  readonly bytes: Buffer;
  readonly contentType: GeneratedImage['contentType'];
  /** Counts the previews of the call from 0. */
  readonly index: number;
}

export interface ImageCall {
  readonly prompt: string;
  readonly negativePrompt: string | null;
  readonly n: number;
  /** `WIDTHxHEIGHT`, one of the model's sizes. */
  readonly size: string;
  /** Whether the caller named that size, as opposed to the catalog's default. */
  readonly isSizeAsked: boolean;
  readonly quality: string | null;
  readonly style: string | null;
  readonly user: string | null;
  /** Images to edit or to use as references, in the caller's order; empty for a prompt alone. */
  readonly inputs: readonly InputImage[];
  /** A PNG as large as the first input, whose transparent part may change. */
  readonly mask: InputImage | null;
  readonly options: ImageOptions;
  /**
   * Number of previews requested; null if the response is not streamed. A vendor without previews sends only
   * the final image.
   */
  readonly partialImages: number | null;
  /** Receives the previews of a streamed response. Resolves once the caller has read enough of them to go on. */
  readonly onPartial?: (partial: PartialImage) => Promise<void>;
}

export interface GeneratedImage {
  readonly bytes: Buffer;
  readonly contentType: 'image/png' | 'image/jpeg' | 'image/webp';
  readonly revisedPrompt: string | null;
}

export interface ImageResponse {
  /**
   * Fewer than requested if the vendor failed to make the others. Empty only if the model ended without an
   * image, said so, and the vendor counted the usage.
   */
  readonly images: readonly GeneratedImage[];
  /** Why there are fewer, if known; always set if there are none. */
  readonly missing?: UpstreamError;
  /** How often the vendor read the prompt: the number of calls that got a response. */
  readonly calls: number;
  /** For models priced by tokens, over all calls that got a response; null if the vendor reported none. */
  readonly usage: UpstreamUsage | null;
}

/** Each method exists only if the kind supports it. All reject with UpstreamError, or with the signal's reason. */
export interface Upstream {
  /**
   * Yields the model's output. If it returns without at least one `finish` event, the caller must raise an
   * upstream error: a stream that stops without an end never counts as success.
   */
  chat?(
    target: UpstreamTarget,
    body: ChatBody,
    stream: boolean,
    context: CallContext,
  ): AsyncIterable<ChatEvent>;
  /** Whether `chat` sends the vendor the bytes of the image at this URL. Other URLs are sent as they are. */
  wantsImageBytes?(target: UpstreamTarget, url: string): boolean;
  embed?(target: UpstreamTarget, call: EmbeddingCall, context: CallContext): Promise<EmbeddingAnswer>;
  generateImages?(target: UpstreamTarget, call: ImageCall, context: CallContext): Promise<ImageResponse>;
  /** Releases sockets and threads. */
  close(): Promise<void>;
}

/**
 * How a call failed, in terms that routing can act on.
 * - `rejected`: the vendor rejected this very request (its 400, 413, 422); trying elsewhere is pointless
 * - `missing`: the vendor does not know the model or address (its 404); another route may
 * - `auth`: the key is wrong, blocked or out of credit (401, 402, 403)
 * - `rate_limited`: 429; `retryAfterMs` if the vendor said it
 * - `too_large`: the request exceeds what this key may send per minute, however long one waits; another key may
 * - `unavailable`: 5xx, connection refused or cut off, invalid response
 * - `timeout`: one of our timeouts passed
 */
export type UpstreamFailure =
  'rejected' | 'missing' | 'auth' | 'rate_limited' | 'too_large' | 'unavailable' | 'timeout';

export class UpstreamError extends Error {
  override readonly name = 'UpstreamError';
  readonly failure: UpstreamFailure;
  /** HTTP status of the vendor, if there was one. */
  readonly status: number | null;
  readonly retryAfterMs: number | null;
  /** The vendor's own error code, such as `insufficient_quota`, for operators. */
  readonly vendorCode: string | null;
  /**
   * The request caused the failure, and the server worked correctly. The failure says nothing about other
   * requests.
   */
  readonly isOfRequest: boolean;
  /** We stopped waiting for a vendor that had been called. It may finish the call and charge for it. */
  readonly mayGoOn: boolean;

  constructor(
    failure: UpstreamFailure,
    message: string,
    details: {
      status?: number | null;
      retryAfterMs?: number | null;
      vendorCode?: string | null;
      isOfRequest?: boolean;
      mayGoOn?: boolean;
      cause?: unknown;
    } = {},
  ) {
    super(message, { cause: details.cause });
    this.failure = failure;
    this.status = details.status ?? null;
    this.retryAfterMs = details.retryAfterMs ?? null;
    this.vendorCode = details.vendorCode ?? null;
    this.isOfRequest = details.isOfRequest ?? false;
    this.mayGoOn = details.mayGoOn ?? false;
  }
}
