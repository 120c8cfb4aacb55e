import { randomUUID } from 'node:crypto';

import { isRecord, type JsonRecord } from '../../../shared/encoding/json-record.ts';
import { readArray, readCount, readText } from '../json-value.ts';

interface KnownCall {
  readonly index: number;
  readonly vendorIndex: number | null;
  readonly id: string | null;
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
  const callsOfChoice = new Map<number, KnownCall[]>();

  function normalizeCall(calls: KnownCall[], call: JsonRecord): JsonRecord {
    const vendorIndex = readCount(call['index']);
    const id = readText(call['id']);
    const knownCall = findCall(calls, vendorIndex, id, isRecord(call['function']) ? call['function'] : {});
    if (knownCall !== undefined) {
      // Name, ID and type have already been sent; clients that concatenate would duplicate them.
      const { id: _id, type: _type, function: functionPart, ...others } = call;
      if (!isRecord(functionPart)) {
        return { ...others, index: knownCall.index };
      }
      const { name: _name, ...pieces } = functionPart;
      return { ...others, index: knownCall.index, function: pieces };
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

/** Returns the call that a piece continues; undefined if the piece starts a new call. */
function findCall(
  calls: readonly KnownCall[],
  vendorIndex: number | null,
  id: string | null,
  functionPart: JsonRecord,
): KnownCall | undefined {
  if (id !== null) {
    return calls.find((call) => call.id === id && (vendorIndex === null || call.vendorIndex === vendorIndex));
  }
  if (vendorIndex !== null) {
    return calls.findLast((call) => call.vendorIndex === vendorIndex);
  }
  // With neither index nor ID, a name starts a new call, and arguments without a name belong to the last call.
  return readText(functionPart['name']) === null ? calls.at(-1) : undefined;
}
