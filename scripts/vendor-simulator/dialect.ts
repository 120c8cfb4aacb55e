import type { Faults } from './faults.ts';
import type { VectorSource } from './vectors.ts';

export type CallHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** What the simulator asks of a dialect. Dialects do no I/O: they say what to send, the simulator sends it. */
export interface Dialect {
  /** What every path of the dialect begins with. */
  readonly prefix: string;
  /** The header by which the vendor names a call; null where it does not. */
  readonly requestIdHeader: string | null;
  /** Whether the vendor says by headers when to come back. */
  readonly sendsRetryAfter: boolean;
  /** What a path is for; null where the dialect has no such path. */
  findOperation(method: string, path: string, query: URLSearchParams): Operation | null;
  /** The key as this dialect carries it; null where there is none. */
  readKey(headers: CallHeaders): string | null;
  /** What the vendor has against the headers alone; null where nothing. */
  checkHeaders(headers: CallHeaders): SimulatedError | null;
  answer(call: SimulatedCall): SimulatedAnswer;
  /** How the vendor puts what every vendor has to say at times. */
  refuse(refusal: Refusal): SimulatedError;
  /** The body of an error. */
  renderError(error: SimulatedError, context: ErrorContext): string;
}

export interface Operation {
  readonly name: 'chat' | 'embeddings' | 'images' | 'image-edits' | 'models';
  /** The model, where the path names it; null where the body's `model` does. */
  readonly model: string | null;
  /** How the path says that the answer is to come; null where the body says it. */
  readonly framing: 'whole' | 'events' | 'array' | null;
}

export interface SimulatedCall {
  readonly operation: Operation;
  readonly model: string;
  readonly body: Readonly<Record<string, unknown>>;
  readonly faults: Faults;
  readonly settings: SimulatorSettings;
}

/** How answers are made where nothing goes wrong. */
export interface SimulatorSettings {
  readonly vectors: VectorSource;
  /** Words of each chat answer; null: the answer repeats what the user said last. */
  readonly replyWords: number | null;
  /** How the tokens of a prompt are counted: its words, or all that arrived by o200k_base. */
  readonly promptTokens: PromptTokens;
}

export type PromptTokens = 'words' | 'received';

export type RefusalReason =
  | 'unknown-path'
  | 'not-json'
  | 'revoked'
  | 'exhausted'
  | 'exhausted402'
  | 'forbidden'
  | 'crowded'
  /** A status that somebody asked for by a word. */
  | 'asked-for';

export interface Refusal {
  readonly reason: RefusalReason;
  /** Counts for `asked-for` alone: every vendor has statuses of its own for the others. */
  readonly status: number;
  readonly message: string;
  readonly key: string | null;
}

export interface SimulatedError {
  readonly status: number;
  readonly message: string;
  /** The dialect's own name of it: OpenAI's and Anthropic's `type`, Google's `status`. */
  readonly type: string;
  /** OpenAI alone has these two. */
  readonly code?: string | null;
  readonly param?: string | null;
  /** Google alone has these. */
  readonly details?: readonly object[];
}

export interface ErrorContext {
  readonly requestId: string;
  /** For who says it in the body. */
  readonly retryAfterMs: number | null;
  readonly framing: Operation['framing'];
}

export type SimulatedAnswer =
  | { readonly kind: 'whole'; readonly parts: readonly (Buffer | string)[] }
  | {
      readonly kind: 'stream';
      readonly contentType: string;
      readonly chunks: readonly (Buffer | string)[];
      /** The event that tells of an error after the stream began. */
      readonly errorChunk: string;
    }
  | { readonly kind: 'error'; readonly error: SimulatedError };

/** How many inputs or pictures a call is for: what it costs a vendor beside the call itself. */
export function countInputs(body: Readonly<Record<string, unknown>>): number {
  const inputs = body['input'] ?? body['requests'];
  if (Array.isArray(inputs)) {
    return inputs.length;
  }
  const n = Number(body['n'] ?? 1);
  return Number.isInteger(n) && n > 0 ? n : 1;
}
