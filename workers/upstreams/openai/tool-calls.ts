import { randomUUID } from 'node:crypto';

import { isRecord, type JsonRecord } from '../../../shared/encoding/json-record.ts';
import { readArray, readCount, readText } from '../json-value.ts';

interface KnownCall {
  readonly index: number;
  readonly vendorIndex: number | null;
  readonly id: string | null;
}

export interface ToolCallNormalizer {
  /** Returns the delta of a choice with its tool calls in the form that the official SDK's accumulators need. */
  normalize(choice: number, delta: JsonRecord): JsonRecord;
}

/**
 * Normalizes streamed tool calls. OpenAI's streams give each tool call an integer index, its ID and name once,
 * then pieces of arguments, and clients concatenate what they get. Compatible servers leave out the index, give
 * parallel calls the same one, repeat ID and name with every piece, or have no ID. Other deltas pass through
 * untouched.
 */
export function createToolCallNormalizer(): ToolCallNormalizer {
  const callsOfChoice = new Map<number, KnownCall[]>();

  function normalizeCall(calls: KnownCall[], call: JsonRecord): JsonRecord {
    const vendorIndex = readCount(call['index']);
    const id = readText(call['id']);
    const known = findCall(calls, vendorIndex, id, isRecord(call['function']) ? call['function'] : {});
    if (known !== undefined) {
      // Name, ID and type were already sent; clients that concatenate would double them.
      const { id: _id, type: _type, function: told, ...rest } = call;
      if (!isRecord(told)) {
        return { ...rest, index: known.index };
      }
      const { name: _name, ...pieces } = told;
      return { ...rest, index: known.index, function: pieces };
    }
    const index = calls.length;
    calls.push({ index, vendorIndex, id });
    return { type: 'function', ...call, index, id: id ?? `call_${randomUUID().replaceAll('-', '')}` };
  }

  return {
    normalize(choice, delta) {
      const toolCalls = readArray(delta['tool_calls']);
      if (toolCalls.length === 0) {
        return delta;
      }
      const calls = callsOfChoice.get(choice) ?? [];
      callsOfChoice.set(choice, calls);
      return {
        ...delta,
        tool_calls: toolCalls.map((call) => normalizeCall(calls, isRecord(call) ? call : {})),
      };
    },
  };
}

/** Returns the call that a piece continues; undefined if it begins one. */
function findCall(
  calls: readonly KnownCall[],
  vendorIndex: number | null,
  id: string | null,
  told: JsonRecord,
): KnownCall | undefined {
  if (id !== null) {
    return calls.find((call) => call.id === id && (vendorIndex === null || call.vendorIndex === vendorIndex));
  }
  if (vendorIndex !== null) {
    return calls.findLast((call) => call.vendorIndex === vendorIndex);
  }
  // Neither index nor ID: a name begins a call, and arguments alone belong to the last one.
  return readText(told['name']) === null ? calls.at(-1) : undefined;
}
