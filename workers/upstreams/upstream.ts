import type { ImageOptions } from '../../shared/queue/job-kinds.ts';

/**
 * What every dialect implements. An upstream translates one request and its answer; it knows no money
 * and no Redis. It never retries: the routing above decides that.
 */

/** One chosen way to serve a call: the model's name at the upstream, and the key to use there. */
export interface UpstreamTarget {
  /** The model's name as the upstream knows it. */
  readonly model: string;
  readonly apiKey: string | null;
  /** Request fields this route or upstream does not take; they are left out. */
  readonly drops: ReadonlySet<string>;
  /**
   * How the vendor's model is told to reason: by a `budget` of tokens, or by an `effort`. Null leaves it to the dialect,
   * which goes by the model's name.
   */
  readonly thinking: 'budget' | 'effort' | null;
  /** Whether the vendor is given the links of pictures, or their bytes, which we fetch. */
  readonly imageUrls: 'pass' | 'fetch';
}

export interface CallContext {
  readonly signal: AbortSignal;
  /** Whose turns are taken where a large call would hold up the event loop; no more is known of the account. */
  readonly accountId: string;
  readonly log: UpstreamLogger;
  /** What the caller's messages point at. */
  readonly media: MediaLoader;
  /** What is kept of earlier turns of this very conversation (`remember` events), as it was counted at admission. */
  readonly recalled: Recalled;
  /** Called when a request is written to the vendor: from then on the vendor may charge for it. */
  readonly onSent?: () => void;
  /** Called when a vendor refuses a request that was written to it: it charges nothing for that. */
  readonly onRefused?: () => void;
  /** Aborted when nobody waits for the answer any more: calls under way go on, and no further one is begun. */
  readonly awaited?: AbortSignal;
  /** For a further call beside the one under way; where it is left out, such calls need no slot. */
  readonly enterAgain?: EnterAgain;
  /** Called when one of several calls has ended: how much is done, from 0 to 1. */
  readonly onProgress?: (done: number) => void;
}

/**
 * Waits for another slot of the way that is being called.
 * @returns null where there is none in time, or the signal is aborted
 */
export type EnterAgain = (signal: AbortSignal) => Promise<FurtherSlot | null>;

export interface FurtherSlot {
  /**
   * Gives it back.
   * @param outcome of its call; null where none was made
   */
  leave(outcome: PromiseSettledResult<unknown> | null): void;
}

/** By `nameCall`, the JSON value that was remembered. */
export type Recalled = ReadonlyMap<string, unknown>;

/** Names a tool call of a conversation: some vendors give the same id again in every answer. */
export function nameCall(messageIndex: number, toolCallId: string): string {
  return `${messageIndex}:${toolCallId}`;
}

/** Bytes of a caller's that have been looked at: `mediaType` is what they are, not what they were said to be. */
export interface LoadedMedia {
  readonly mediaType: string;
  readonly base64: string;
}

export interface MediaLoader {
  /**
   * Waits until there is memory for all of these pictures, by the request's deadline; to be called before several are loaded.
   * Rejects with AppError `deadline_exceeded`, or with the signal's reason.
   */
  reserve(urls: readonly string[], signal: AbortSignal): Promise<void>;
  /**
   * A picture, from an https URL (fetched) or a data URI, checked to be one: PNG, JPEG, WebP or GIF. The same URL is
   * loaded once a request. Rejects with AppError `unsafe_url` or `validation_failed`, or with the signal's reason.
   */
  loadImage(url: string, signal: AbortSignal): Promise<LoadedMedia>;
}

export interface UpstreamLogger {
  warn(fields: object, message: string): void;
  debug(fields: object, message: string): void;
}

/** Tokens as the vendor reported them; null where it reported nothing. `details` are parts, never additions. */
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

/** A chat request in OpenAI's shape, as the caller sent it after validation, with `max_tokens` already bounded. */
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
 * One step of a chat answer, streamed or not: `delta` objects have OpenAI's `choices[].delta` shape. Every chat call
 * is consumed as a stream of these; an upstream that answered whole yields one delta a choice.
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
  /** Pages that the answer rests on, in the order in which it names them; may come several times. */
  | { readonly type: 'sources'; readonly index: number; readonly sources: readonly WebSource[] }
  /**
   * What the vendor will want back with the conversation and clients drop, by the id of a tool call of this choice: other
   * choices may have the same one. It comes ahead of the choice's end.
   */
  | { readonly type: 'remember'; readonly index: number; readonly toolCallId: string; readonly value: object }
  /**
   * Reported as soon as any count is known and again when one changes; the last event counts. A partial report does not
   * cover everything generated before it, such as Anthropic's first one, which says `output_tokens: 1`.
   */
  | { readonly type: 'usage'; readonly usage: UpstreamUsage; readonly isPartial?: true };

/** A page of the web that a search found. */
export interface WebSource {
  readonly url: string;
  readonly title: string | null;
}

export interface EmbeddingCall {
  readonly inputs: readonly string[];
  /** Set only where the caller asked for other than the model's default. */
  readonly dimensions: number | null;
  /** Given only when all inputs of the call are of one caller. */
  readonly user: string | null;
}

export interface EmbeddingAnswer {
  /** Float32 little-endian, inputs in order, `dimensions * 4` bytes each. */
  readonly vectors: Buffer;
  readonly dimensions: number;
  /** Places of the vectors that are not all finite numbers: no answer to their inputs. */
  readonly broken: readonly number[];
  readonly promptTokens: number | null;
  /** To be called once nothing refers to the vectors any more; null where they are nobody's but the answer's. */
  readonly giveBack: (() => void) | null;
}

/** A caller's image, made anew from its pixels: nothing but the image is left in it. */
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
  /** Whether the caller named that size, as against the catalog's default. */
  readonly isSizeAsked: boolean;
  readonly quality: string | null;
  readonly style: string | null;
  readonly user: string | null;
  /** Images to edit or to go by, in the caller's order; none for words alone. */
  readonly inputs: readonly InputImage[];
  /** A PNG as large as the first input, whose transparent part may change. */
  readonly mask: InputImage | null;
  readonly options: ImageOptions;
  /** Previews that are wanted; null where the answer is not streamed. A vendor that has none answers whole. */
  readonly partialImages: number | null;
  /** Takes the previews of a streamed answer; resolves once the caller has taken enough of them to go on. */
  readonly onPartial?: (partial: PartialImage) => Promise<void>;
}

export interface GeneratedImage {
  readonly bytes: Buffer;
  readonly contentType: 'image/png' | 'image/jpeg' | 'image/webp';
  readonly revisedPrompt: string | null;
}

export interface ImageAnswer {
  /**
   * Fewer than were asked for where the vendor failed to make the others; none only where the model ended without one by its
   * own word and the vendor counted what that took.
   */
  readonly images: readonly GeneratedImage[];
  /** Why there are fewer, where it is known; always where there is none. */
  readonly missing?: UpstreamError;
  /** How often the vendor read the prompt: the calls that it answered. */
  readonly calls: number;
  /** For models that are paid by tokens, of all calls that were answered; null where the vendor told none. */
  readonly usage: UpstreamUsage | null;
}

/** Each method is there only where the kind can do it. All reject with UpstreamError, or with the signal's reason. */
export interface Upstream {
  /**
   * Yields what the model says. Returning without at least one `finish` event is an upstream error of the caller's
   * to raise: a stream that stops without an end never counts as success.
   */
  chat?(
    target: UpstreamTarget,
    body: ChatBody,
    stream: boolean,
    context: CallContext,
  ): AsyncIterable<ChatEvent>;
  /** Whether `chat` gives the vendor the bytes of the picture at this URL. What it does not load goes as it is. */
  wantsImageBytes?(target: UpstreamTarget, url: string): boolean;
  embed?(target: UpstreamTarget, call: EmbeddingCall, context: CallContext): Promise<EmbeddingAnswer>;
  generateImages?(target: UpstreamTarget, call: ImageCall, context: CallContext): Promise<ImageAnswer>;
  /** Releases sockets and threads. */
  close(): Promise<void>;
}

/**
 * How a call failed, in terms routing can act on.
 * - `rejected`: the vendor refused this very request (its 400, 413, 422): trying elsewhere is pointless
 * - `missing`: the vendor knows no such model or address (its 404): another route may
 * - `auth`: the key is wrong, blocked or out of money (401, 402, 403)
 * - `rate_limited`: 429; `retryAfterMs` where the vendor said it
 * - `too_large`: the request is more than may be sent with this key in a minute, however long one waits: another key may
 * - `unavailable`: 5xx, connection refused or cut, garbage instead of an answer
 * - `timeout`: one of our timeouts passed
 */
export type UpstreamFailure =
  'rejected' | 'missing' | 'auth' | 'rate_limited' | 'too_large' | 'unavailable' | 'timeout';

export class UpstreamError extends Error {
  override readonly name = 'UpstreamError';
  readonly failure: UpstreamFailure;
  /** HTTP status of the vendor, where there was one. */
  readonly status: number | null;
  readonly retryAfterMs: number | null;
  /** The vendor's own word for it, such as `insufficient_quota`; operators read it. */
  readonly vendorCode: string | null;
  /** What was asked brought it about, and the server did as it should: it says nothing of how others will fare. */
  readonly isOfRequest: boolean;
  /** We stopped waiting for a vendor that had been asked: it may go on to the end, and charge for it. */
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
