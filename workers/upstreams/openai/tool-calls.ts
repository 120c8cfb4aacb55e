import { randomUUID } from 'node:crypto';

import { isRecord, type JsonRecord } from '../../../shared/encoding/json-record.ts';
import { readArray, readCount, readText } from '../json-value.ts';

interface KnownCall {
  readonly index: number;
}

export interface ToolCallNormalizer {
  /** Returns the delta of a choice with its tool calls in the format that the official SDKs' accumulators need. */
  normalize(choice: number, delta: JsonRecord): JsonRecord;
}

/**
 * Normalizes streamed tool calls. In OpenAI's streams, each tool call has an integer index, its ID and name once, and
 * then pieces of arguments; clients concatenate all of these. Some compatible servers omit the index, use the same
 * one for parallel calls, repeat the ID and name with every piece, or omit the ID. Other deltas are passed on
 * unchanged.
 */
export function createToolCallNormalizer(): ToolCallNormalizer {
  const callsOfChoice = new Map<number, KnownCalls>();

  function normalizeCall(calls: KnownCalls, call: JsonRecord): JsonRecord {
    const vendorIndex = readCount(call['index']);
    const id = readText(call['id']);
    const knownCall = calls.find(vendorIndex, id, isRecord(call['function']) ? call['function'] : {});
    if (knownCall !== undefined) {
      // Name, ID and type have already been sent; clients that concatenate would duplicate them.
      const { id: _id, type: _type, function: functionPart, ...others } = call;
      if (!isRecord(functionPart)) {
        return { ...others, index: knownCall.index };
      }
      const { name: _name, ...pieces } = functionPart;
      return { ...others, index: knownCall.index, function: pieces };
    }
    const index = calls.add(vendorIndex, id);
    return { type: 'function', ...call, index, id: id ?? `call_${randomUUID().replaceAll('-', '')}` };
  }

  return {
    normalize(choice, delta) {
      const toolCalls = readArray(delta['tool_calls']);
      if (toolCalls.length === 0) {
        return delta;
      }
      const calls = callsOfChoice.get(choice) ?? new KnownCalls();
      callsOfChoice.set(choice, calls);
      return {
        ...delta,
        tool_calls: toolCalls.map((call) => normalizeCall(calls, isRecord(call) ? call : {})),
      };
    },
  };
}

/** The calls of one choice so far. Finds a call without searching the others: a response may have thousands. */
class KnownCalls {
  #count = 0;
  #last: KnownCall | undefined;
  readonly #firstById = new Map<string, KnownCall>();
  readonly #firstByBoth = new Map<string, KnownCall>();
  readonly #lastByIndex = new Map<number, KnownCall>();

  /** @returns the call's index in our stream */
  add(vendorIndex: number | null, id: string | null): number {
    const call = { index: this.#count };
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
  find(vendorIndex: number | null, id: string | null, functionPart: JsonRecord): KnownCall | undefined {
    if (id !== null)
      return vendorIndex === null ? this.#firstById.get(id) : this.#firstByBoth.get(`${vendorIndex} ${id}`);
    if (vendorIndex !== null) return this.#lastByIndex.get(vendorIndex);
    // With neither index nor ID, a name starts a new call, and arguments without a name belong to the last call.
    return readText(functionPart['name']) === null ? this.#last : undefined;
  }
}
