import type { OpenAiProfile } from '../../shared/catalog/openai-profile.ts';
import type { ImageOptions } from '../../shared/work/queue/job-kinds.ts';

/**
 * The interface that every dialect implements. An upstream translates one request and its response. It knows nothing
 * about money or Redis, and never retries; retries are up to routing.
 */

/** What to call at an upstream: the model's name there, the key, and the route's settings. */
export interface UpstreamTarget {
  /** The model's name at the upstream. */
  readonly model: string;
  readonly apiKey: string | null;
  /** Request fields that this route or upstream does not accept; they are omitted. */
  readonly drops: ReadonlySet<string>;
  /** Request fields beyond the specification that this route's server knows. Only used for `openai`. */
  readonly accepts: readonly string[];
  /** Which servers with OpenAI's API it is like. Only used for `openai`. */
  readonly profile: OpenAiProfile;
  /**
   * How reasoning is requested: by a `budget` of tokens, or by an `effort`. If null, the dialect derives it from the
   * model's name.
   */
  readonly thinking: 'budget' | 'effort' | null;
  /** Whether the vendor gets image URLs, or image bytes that we fetch. */
  readonly imageUrls: 'pass' | 'fetch';
}

export interface CallContext {
  readonly signal: AbortSignal;
  /**
   * The account that this call is for. Work that would block the event loop is scheduled round-robin by account.
   * Upstreams know nothing else about the account.
   */
  readonly accountId: string;
  readonly log: UpstreamLogger;
  /** Loads the media that the caller's messages refer to. */
  readonly media: MediaLoader;
  /**
   * The reasoning that was saved from earlier turns of this conversation (`remember` events). Admission loaded it and
   * included its tokens in the estimate.
   */
  readonly recalled: Recalled;
  /** Whether the caller did not set the temperature, and the chat has the API's default. */
  readonly isTemperatureAdded?: boolean;
  /** Called when a request is written to the vendor. From then on, the vendor may bill it. */
  readonly onSent?: () => void;
  /** Called when the vendor rejects a request that was written to it. The vendor does not bill that. */
  readonly onRejected?: () => void;
  /** Aborted when nobody waits for the response any more. Running calls continue, and no further call is started. */
  readonly callerSignal?: AbortSignal;
  /** Acquires a slot for another call in parallel. If omitted, such calls need no slot. */
  readonly acquireExtraSlot?: AcquireExtraSlot;
  /** Sent to the vendor as its header; null or absent if it gets none. */
  readonly traceparent?: string | null;
  /** Called when one of several calls has ended, with the progress from 0 to 1. */
  readonly onProgress?: (done: number) => void;
}

/**
 * Waits for another concurrency slot of the route candidate that is being called.
 * @returns null if none becomes free in time, or if the signal is aborted
 */
export type AcquireExtraSlot = (signal: AbortSignal) => Promise<ExtraSlot | null>;

export interface ExtraSlot {
  /**
   * Releases the slot.
   * @param outcome the outcome of the call; null if none was made
   */
  release(outcome: PromiseSettledResult<unknown> | null): void;
}

/** The saved JSON values, keyed by the result of `nameCall`. */
export type Recalled = ReadonlyMap<string, unknown>;

/** Returns a unique name for a tool call in a conversation, because some vendors reuse IDs in every response. */
export function nameCall(messageIndex: number, toolCallId: string): string {
  return `${messageIndex}:${toolCallId}`;
}

/** Media from a caller, after inspection: `mediaType` is the detected type, not the claimed one. */
export interface LoadedMedia {
  readonly mediaType: string;
  readonly base64: string;
}

export interface MediaLoader {
  /**
   * Waits until there is memory for all of these images, at most until the request's deadline. Call this before loading
   * several images.
   * @throws AppError `deadline_exceeded`; the signal's reason when it is aborted
   */
  reserve(urls: readonly string[], signal: AbortSignal): Promise<void>;
  /**
   * Loads an image from an https URL (fetched) or a data URI, and checks that it is PNG, JPEG, WebP or GIF. Each URL is
   * loaded once per request.
   * @throws AppError `unsafe_url` or `validation_failed`; the signal's reason when it is aborted
   */
  loadImage(url: string, signal: AbortSignal): Promise<LoadedMedia>;
}

export interface UpstreamLogger {
  warn(fields: object, message: string): void;
  debug(fields: object, message: string): void;
}

/**
 * Tokens as reported by the vendor; null if it did not report them. Cached, cache-write and web-search tokens are
 * parts of `promptTokens`, and reasoning tokens are part of `completionTokens`.
 */
export interface UpstreamUsage {
  readonly promptTokens: number | null;
  readonly completionTokens: number | null;
  readonly cachedTokens: number | null;
  readonly cacheWriteTokens: number | null;
  readonly reasoningTokens: number | null;
  readonly webSearchTokens: number | null;
  /** Of `promptTokens`: those of input images. Only of calls that make images. */
  readonly imageTokens?: number;
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

/** A validated chat request in OpenAI's format, with `max_tokens` already limited. */
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
 * One step of a chat response. `delta` objects have OpenAI's `choices[].delta` format. Every chat call is consumed as a
 * stream of these events; if the response is not streamed, there is one delta per choice.
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
  /** Pages on which the response is based, in the order of their citations; may occur several times. */
  | { readonly type: 'sources'; readonly index: number; readonly sources: readonly WebSource[] }
  /**
   * Data that the vendor requires to be sent back on later turns, but that clients discard. It belongs to a tool call of this
   * choice; other choices may use the same tool call ID. The event comes before the `finish` event of the choice.
   */
  | { readonly type: 'remember'; readonly index: number; readonly toolCallId: string; readonly value: object }
  /**
   * Reported as soon as any count is known, and again when one changes; the last event is used. A partial report may
   * not count everything generated so far: Anthropic's first one, for example, has `output_tokens: 1`.
   */
  | { readonly type: 'usage'; readonly usage: UpstreamUsage; readonly isPartial?: true };

/** A web page found by a search. */
export interface WebSource {
  readonly url: string;
  readonly title: string | null;
}

export interface EmbeddingCall {
  readonly inputs: readonly string[];
  /** Set only if the caller requested something other than the model's default. */
  readonly dimensions: number | null;
  /** The end user; null if the inputs belong to several requests. */
  readonly user: string | null;
}

export interface EmbeddingResponse {
  /** Float32 little-endian, inputs in order, `dimensions * 4` bytes each. */
  readonly vectors: Buffer;
  readonly dimensions: number;
  /** Indices of the vectors that contain non-finite numbers. Their inputs have no valid vector. */
  readonly broken: readonly number[];
  readonly promptTokens: number | null;
  /**
   * Returns the buffer to its pool. Call this when nothing refers to the vectors any more. Null if the buffer is not
   * pooled.
   */
  readonly release: (() => void) | null;
}

/** A caller's image, re-encoded from its pixels, so that nothing else of the file remains. */
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
  /** The index of the preview in the call, from 0. */
  readonly index: number;
}

export interface ImageCall {
  readonly prompt: string;
  readonly negativePrompt: string | null;
  readonly n: number;
  /** `WIDTHxHEIGHT`, one of the model's sizes. */
  readonly size: string;
  /** Whether the caller requested this size; otherwise it is the catalog's default. */
  readonly isSizeRequested: boolean;
  readonly quality: string | null;
  readonly style: string | null;
  readonly user: string | null;
  /** Images to edit or to use as references, in the caller's order; empty if there is only a prompt. */
  readonly inputs: readonly InputImage[];
  /** A PNG as large as the first input, whose transparent part may change. */
  readonly mask: InputImage | null;
  readonly options: ImageOptions;
  /**
   * Number of requested previews; null if the response is not streamed. A vendor without previews sends only the final
   * image.
   */
  readonly partialImages: number | null;
  /** Receives the previews of a streamed response. Resolves once the caller has read enough to continue. */
  readonly onPartial?: (partial: PartialImage) => Promise<void>;
}

export interface GeneratedImage {
  readonly bytes: Buffer;
  readonly contentType: 'image/png' | 'image/jpeg' | 'image/webp';
  readonly revisedPrompt: string | null;
}

export interface ImageResponse {
  /**
   * Fewer than requested if the vendor failed to make the others. Empty only if the model reported that it ended
   * without an image, and the vendor reported the usage.
   */
  readonly images: readonly GeneratedImage[];
  /** Why there are fewer images, if known; always set if there are none. */
  readonly shortfallReason?: UpstreamError;
  /** How many times the vendor processed the prompt: the number of calls with a response. */
  readonly calls: number;
  /** For models priced by tokens, over all calls with a response; null if the vendor did not report it. */
  readonly usage: UpstreamUsage | null;
}

/** A dialect omits the methods that it does not support. All reject with UpstreamError, or with the signal's reason. */
export interface Upstream {
  /**
   * Yields the model's output, as the events that arrived together. If it returns without at least one `finish` event,
   * the caller must throw an upstream error: a stream that stops early is never a success.
   */
  chat?(
    target: UpstreamTarget,
    body: ChatBody,
    stream: boolean,
    context: CallContext,
  ): AsyncIterable<readonly ChatEvent[]>;
  /** Whether `chat` sends the vendor the bytes of the image at this URL. Other URLs are sent unchanged. */
  needsImageBytes?(target: UpstreamTarget, url: string): boolean;
  embed?(target: UpstreamTarget, call: EmbeddingCall, context: CallContext): Promise<EmbeddingResponse>;
  generateImages?(target: UpstreamTarget, call: ImageCall, context: CallContext): Promise<ImageResponse>;
  /** Releases sockets and threads. */
  close(): Promise<void>;
}

/**
 * How a call failed, classified for routing.
 * - `rejected`: the vendor rejected the request itself (400, 413, 422); retrying it elsewhere is pointless
 * - `missing`: the vendor does not have the model or address (404); another route may
 * - `auth`: the key is wrong, blocked or out of credit (401, 402, 403)
 * - `rate_limited`: 429; with `retryAfterMs` if the vendor sent a time
 * - `too_large`: the request alone exceeds this key's per-minute limit, so waiting does not help; another key may
 * - `unavailable`: 5xx, connection refused or interrupted, invalid response
 * - `timeout`: one of our timeouts expired
 */
export type UpstreamFailure =
  | 'rejected'
  | 'missing'
  | 'auth'
  | 'rate_limited'
  | 'too_large'
  | 'unavailable'
  | 'timeout';

export class UpstreamError extends Error {
  override readonly name = 'UpstreamError';
  readonly failure: UpstreamFailure;
  /** The vendor's HTTP status, if there was one. */
  readonly status: number | null;
  readonly retryAfterMs: number | null;
  /** The vendor's error code, such as `insufficient_quota`, for operators. */
  readonly vendorCode: string | null;
  /**
   * Whether the request caused the failure while the server worked correctly. Other requests are not affected.
   */
  readonly isRequestFailure: boolean;
  /** Whether the vendor's server was not reached. */
  readonly isUnreached: boolean;
  /** Whether we stopped waiting for a vendor that had been called. It may still finish the call and bill it. */
  readonly mayStillRun: boolean;

  constructor(
    failure: UpstreamFailure,
    message: string,
    details: {
      status?: number | null;
      retryAfterMs?: number | null;
      vendorCode?: string | null;
      isRequestFailure?: boolean;
      isUnreached?: boolean;
      mayStillRun?: boolean;
      cause?: unknown;
    } = {},
  ) {
    super(message, { cause: details.cause });
    this.failure = failure;
    this.status = details.status ?? null;
    this.retryAfterMs = details.retryAfterMs ?? null;
    this.vendorCode = details.vendorCode ?? null;
    this.isRequestFailure = details.isRequestFailure ?? false;
    this.isUnreached = details.isUnreached ?? false;
    this.mayStillRun = details.mayStillRun ?? false;
  }
}

/** All vectors of a response have another length than the catalog says or the caller asked for. */
export const wrongLength = (dimensions: number, expected: number): UpstreamError =>
  new UpstreamError(
    'missing',
    `the upstream sent vectors of ${dimensions} dimensions instead of ${expected}: the model's dimensions in the catalog, or the server, are configured wrong`,
  );
