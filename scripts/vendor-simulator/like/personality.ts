import type { JsonRecord } from '../../../shared/encoding/json-record.ts';
import type { Operation, SimulatedCall, SimulatedError } from '../dialect.ts';

/** How a real server with OpenAI's API differs from OpenAI. Personalities do no I/O. */
export interface Personality {
  /** The operations that the server has. The others are unknown paths. */
  readonly operations: readonly Operation['name'][];
  /** Returns the server's error for a call, or null. */
  readonly check: (call: SimulatedCall) => SimulatedError | null;
  /** Returns the body as the server reads it, without what it ignores. */
  readonly readBody?: (body: JsonRecord, call: SimulatedCall) => JsonRecord;
  /** Rewrites a whole response of OpenAI's API as this server writes it. */
  readonly writeChat?: (response: JsonRecord, call: SimulatedCall) => JsonRecord;
  readonly writeEmbeddings?: (response: JsonRecord, call: SimulatedCall) => JsonRecord;
  /** Rewrites the chunks of a stream. A text is sent as a comment. */
  readonly writeChunks?: (
    chunks: readonly JsonRecord[],
    call: SimulatedCall,
  ) => readonly (JsonRecord | string)[];
  /** Renders the body of an error. A text is sent as it is. */
  readonly writeError: (error: SimulatedError) => JsonRecord | string;
  /** The last chunk of a stream that breaks off. Defaults to the body of an error. */
  readonly streamError?: JsonRecord;
}

/** A mistake in the request, for servers whose errors have no further fields. */
export function simulateError(status: number, type: string, message: string): SimulatedError {
  return { status, type, message, code: null, param: null };
}
