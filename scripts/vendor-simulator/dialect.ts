import type { Faults } from './faults.ts';
import type { VectorSource } from './vectors.ts';

/** What the simulator asks of a dialect. Dialects do no I/O: they say what to send, the simulator sends it. */
export interface Dialect {
  /** What a path is for; null where it is not of this dialect. */
  findOperation(method: string, path: string): Operation | null;
  /** The key as this dialect carries it; null where there is none. */
  readKey(headers: Readonly<Record<string, string | string[] | undefined>>): string | null;
  answer(call: SimulatedCall): SimulatedAnswer;
  /** The body of an error. */
  renderError(error: SimulatedError): string;
}

export interface Operation {
  readonly name: 'chat' | 'embeddings' | 'images' | 'models';
  /** The model, where the path names it; null where the body's `model` does. */
  readonly model: string | null;
}

export interface SimulatedCall {
  readonly operation: Operation['name'];
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
}

export interface SimulatedError {
  readonly status: number;
  readonly type: string;
  readonly code: string | null;
  readonly message: string;
  readonly param?: string | null;
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
  const input = body['input'];
  if (Array.isArray(input)) {
    return input.length;
  }
  return typeof body['n'] === 'number' ? body['n'] : 1;
}
