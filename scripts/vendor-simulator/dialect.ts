import type { Faults } from './faults.ts';
import type { VectorSource } from './vectors.ts';

export type CallHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** What the simulator needs from a dialect. Dialects do no I/O. They return what the simulator must send. */
export interface Dialect {
  /** Common prefix of the dialect's paths. */
  readonly prefix: string;
  /** The header with the vendor's request id. Null if the vendor does not send one. */
  readonly requestIdHeader: string | null;
  /** Whether the vendor sends headers that specify when to retry. */
  readonly sendsRetryAfter: boolean;
  /** Returns the operation of a path, or null if the dialect has no such path. */
  findOperation(method: string, path: string, query: URLSearchParams): Operation | null;
  /** Reads the key as this dialect sends it. Null if there is none. */
  readKey(headers: CallHeaders): string | null;
  /** Returns the vendor's error for invalid headers, or null. */
  checkHeaders(headers: CallHeaders): SimulatedError | null;
  respond(call: SimulatedCall): SimulatedResponse;
  /** Renders an error that every vendor can return, in this vendor's format. */
  createError(cause: ErrorCause): SimulatedError;
  /** Renders the body of an error. */
  renderError(error: SimulatedError, context: ErrorContext): string;
}

export interface Operation {
  readonly name: 'chat' | 'embeddings' | 'images' | 'image-edits' | 'models';
  /** The model, if the path contains it. Null if it is in the body's `model`. */
  readonly model: string | null;
  /** The response format that the path selects. Null if the body selects it. */
  readonly framing: 'whole' | 'events' | 'array' | null;
}

export interface SimulatedCall {
  readonly operation: Operation;
  readonly model: string;
  readonly body: Readonly<Record<string, unknown>>;
  readonly faults: Faults;
  readonly settings: SimulatorSettings;
}

/** Settings for the content of responses. Faults are set separately. */
export interface SimulatorSettings {
  readonly vectors: VectorSource;
  /** Words of each chat response. Null repeats the user's last message. */
  readonly replyWords: number | null;
  /** How a prompt's tokens are counted: its words, or everything received, with o200k_base. */
  readonly promptTokens: PromptTokens;
}

export type PromptTokens = 'words' | 'received';

export type ErrorReason =
  | 'unknown-path'
  | 'not-json'
  | 'revoked'
  | 'exhausted'
  | 'exhausted402'
  | 'forbidden'
  | 'crowded'
  /** A status requested by a fault word. */
  | 'requested';

export interface ErrorCause {
  readonly reason: ErrorReason;
  /** Used only for `requested`. For the other reasons, every vendor has its own statuses. */
  readonly status: number;
  readonly message: string;
  readonly key: string | null;
}

export interface SimulatedError {
  readonly status: number;
  readonly message: string;
  /** The dialect's own error name: OpenAI's and Anthropic's `type`, Google's `status`. */
  readonly type: string;
  /** Only for OpenAI. */
  readonly code?: string | null;
  readonly param?: string | null;
  /** For Google, and for servers that list what is wrong with each field. */
  readonly details?: readonly object[];
}

export interface ErrorContext {
  readonly requestId: string;
  /** For vendors that report it in the body. */
  readonly retryAfterMs: number | null;
  readonly framing: Operation['framing'];
}

export type SimulatedResponse =
  | { readonly kind: 'whole'; readonly parts: readonly (Buffer | string)[] }
  | {
      readonly kind: 'stream';
      readonly contentType: string;
      readonly chunks: readonly (Buffer | string)[];
      /** The event that reports an error after the stream has started. */
      readonly errorChunk: string;
    }
  | { readonly kind: 'error'; readonly error: SimulatedError };

/** Counts the inputs or images of a call, each of which adds to its service time. */
export function countInputs(body: Readonly<Record<string, unknown>>): number {
  const inputs = body['input'] ?? body['requests'];
  if (Array.isArray(inputs)) {
    return inputs.length;
  }
  const n = Number(body['n'] ?? 1);
  return Number.isInteger(n) && n > 0 ? n : 1;
}
