import { isRecord } from '../../shared/encoding/json-record.ts';
import type { ChatEvent, FinishReason } from '../upstreams/upstream.ts';

type Delta = Extract<ChatEvent, { type: 'delta' }>;
type Finish = Extract<ChatEvent, { type: 'finish' }>;

/** An event of a response as the caller gets it. */
export type SentEvent = Delta | SentFinish;
export type SentFinish = Omit<Finish, 'finishReason'> & {
  readonly finishReason: FinishReason | 'function_call';
};

/** Of a tool call, in OpenAI's format. */
interface Piece {
  readonly function: { readonly name?: string; readonly arguments?: string };
}

/** Joins the pieces of a call that arrived together. */
function joinPieces(pieces: readonly Piece[]): Piece['function'] {
  const named = pieces.find((piece) => piece.function.name !== undefined);
  const text = pieces.map((piece) => piece.function.arguments ?? '').join('');
  return { ...(named !== undefined && { name: named.function.name! }), arguments: text };
}

/**
 * Translates an event into the older form of tools, in which an answer has at most one call, without an ID: further
 * calls are left out. Returns null if nothing is left of the event.
 */
export function toFunctionCall(event: Delta | Finish): SentEvent | null {
  if (event.type === 'finish')
    return event.finishReason === 'tool_calls' ? { ...event, finishReason: 'function_call' } : event;
  const { tool_calls: calls, ...others } = event.delta;
  if (!Array.isArray(calls)) return event;
  const pieces = calls.filter((call: unknown) => isRecord(call) && call['index'] === 0) as readonly Piece[];
  if (pieces.length > 0) return { ...event, delta: { ...others, function_call: joinPieces(pieces) } };
  return Object.keys(others).length === 0 ? null : { ...event, delta: others };
}
