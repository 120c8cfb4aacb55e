import { randomUUID } from 'node:crypto';
import { isRecord, type JsonRecord } from '../../../shared/encoding/json-record.ts';
import { readArray, readCount, readText } from '../json-value.ts';
import { UpstreamError } from '../upstream.ts';

/** Far more than any model makes at once. */
const maxCalls = 1_024;

/** A piece of a tool call in a stream. The ID, type and name are in the first piece. */
export interface ToolCallPiece {
  readonly index: number;
  readonly id?: string;
  readonly type?: 'function';
  readonly function: { readonly name?: string; readonly arguments: string };
  /** Gemini's extension. */
  readonly extra_content?: JsonRecord;
}

export interface ToolCallNormalizer {
  /** Returns the tool calls in a delta of a choice in the format that the official SDKs' accumulators need. */
  normalize(choice: number, delta: JsonRecord): ToolCallPiece[];
  /** Whether the choice has any tool calls. */
  hasCalls(choice: number): boolean;
}

/**
 * Normalizes streamed tool calls. In OpenAI's streams, each tool call has an integer index, its ID and name once, and
 * then pieces of arguments; clients concatenate all of these. Some compatible servers omit the index, use the same
 * one for parallel calls, repeat the ID and name with every piece, or omit the ID. Some send arguments as an object, or
 * the older `function_call`.
 */
export function createToolCallNormalizer(): ToolCallNormalizer {
  const callsOfChoice = new Map<number, KnownCalls>();
  return {
    normalize(choice, delta) {
      const pieces = listPieces(delta);
      if (pieces.length === 0) return [];
      const calls = callsOfChoice.get(choice) ?? new KnownCalls();
      callsOfChoice.set(choice, calls);
      return pieces.flatMap((piece) => normalizePiece(calls, isRecord(piece) ? piece : {}));
    },
    hasCalls: (choice) => callsOfChoice.has(choice),
  };
}

/** The older form has one call, without an ID or an index. */
function listPieces(delta: JsonRecord): readonly unknown[] {
  const pieces = readArray(delta['tool_calls']);
  const older = delta['function_call'];
  return pieces.length === 0 && isRecord(older) ? [{ function: older }] : pieces;
}

function normalizePiece(calls: KnownCalls, piece: JsonRecord): ToolCallPiece[] {
  const vendorIndex = readCount(piece['index']);
  const id = readId(piece['id']);
  const called = isRecord(piece['function']) ? piece['function'] : {};
  const name = readText(called['name']);
  const args = writeArguments(called['arguments']);
  const extra = readExtraContent(piece['extra_content']);
  const known = calls.find(vendorIndex, id, name);
  if (known === undefined) {
    if (calls.count === maxCalls)
      throw new UpstreamError('unavailable', `the upstream sent more than ${maxCalls} tool calls`);
    const index = calls.add(vendorIndex, id, name !== null);
    const ownId = id ?? `call_${randomUUID().replaceAll('-', '')}`;
    return [
      { index, id: ownId, type: 'function', function: { name: name ?? '', arguments: args }, ...extra },
    ];
  }
  // ID, type and name have already been sent; clients that concatenate would duplicate them.
  const isNewName = name !== null && !known.hasName;
  known.hasName ||= isNewName;
  const { index } = known;
  if (args === '' && !isNewName && extra.extra_content === undefined) return [];
  return [{ index, function: { ...(isNewName ? { name } : {}), arguments: args }, ...extra }];
}

/** Gemini's extension: the signature that must be sent back with the call. */
function readExtraContent(value: unknown): Pick<ToolCallPiece, 'extra_content'> {
  const google = isRecord(value) ? value['google'] : null;
  const signature = isRecord(google) ? readText(google['thought_signature']) : null;
  return signature === null ? {} : { extra_content: { google: { thought_signature: signature } } };
}

const readId = (id: unknown): string | null => (typeof id === 'number' ? String(id) : readText(id));

/** Returns the JSON text of the arguments. Some servers send the object itself. */
function writeArguments(args: unknown): string {
  if (typeof args === 'string') return args;
  return args === null || args === undefined ? '' : JSON.stringify(args);
}

interface KnownCall {
  readonly index: number;
  hasName: boolean;
}

/** The calls of one choice so far. Finds a call without searching the others: a response may have thousands. */
class KnownCalls {
  #count = 0;
  #last: KnownCall | undefined;
  readonly #firstById = new Map<string, KnownCall>();
  readonly #firstByBoth = new Map<string, KnownCall>();
  readonly #lastByIndex = new Map<number, KnownCall>();

  get count(): number {
    return this.#count;
  }

  /** @returns the call's index in our stream */
  add(vendorIndex: number | null, id: string | null, hasName: boolean): number {
    const call = { index: this.#count, hasName };
    this.#count += 1;
    this.#last = call;
    if (vendorIndex !== null) this.#lastByIndex.set(vendorIndex, call);
    if (id === null) return call.index;
    if (!this.#firstById.has(id)) this.#firstById.set(id, call);
    const both = `${vendorIndex} ${id}`;
    if (!this.#firstByBoth.has(both)) this.#firstByBoth.set(both, call);
    return call.index;
  }

  /** Returns the call that a piece continues; undefined if the piece starts a new call. */
  find(vendorIndex: number | null, id: string | null, name: string | null): KnownCall | undefined {
    if (id !== null) {
      const known =
        vendorIndex === null ? this.#firstById.get(id) : this.#firstByBoth.get(`${vendorIndex} ${id}`);
      // Some servers send a new ID with each piece. A new call has a name.
      if (known !== undefined || name !== null || vendorIndex === null) return known;
    }
    if (vendorIndex !== null) return this.#lastByIndex.get(vendorIndex);
    // With neither index nor ID, a name starts a new call, and arguments without a name belong to the last call.
    return name === null ? this.#last : undefined;
  }
}
