import type { JsonRecord } from '../../../shared/encoding/json-record.ts';
import { isRecord } from '../../../shared/encoding/json-record.ts';
import { readRecord, readRecords, readText } from '../json-record.ts';

interface Gathered {
  readonly chunk: JsonRecord;
  readonly calls: JsonRecord[];
}

/** Sends the tool calls of a choice whole, in one chunk before what follows them, instead of in pieces. */
export function gatherCalls(chunks: readonly JsonRecord[]): JsonRecord[] {
  const gathered = new Map<unknown, Gathered>();
  const written: JsonRecord[] = [];
  for (const chunk of chunks) {
    const [choice] = readRecords(chunk['choices']);
    const pieces = readRecords(readRecord(choice?.['delta'])['tool_calls']);
    if (pieces.length > 0) {
      const { calls } = gathered.get(choice?.['index']) ?? { calls: [] };
      gathered.set(choice?.['index'], { chunk, calls });
      for (const piece of pieces) addPiece(calls, piece);
      continue;
    }
    const complete = gathered.get(choice?.['index']);
    if (complete !== undefined) {
      gathered.delete(choice?.['index']);
      const choices = [{ ...choice, delta: { tool_calls: complete.calls }, finish_reason: null }];
      written.push({ ...complete.chunk, choices });
    }
    written.push(chunk);
  }
  return written;
}

function addPiece(calls: JsonRecord[], piece: JsonRecord): void {
  const index = Number(piece['index']);
  const known = readRecord(calls[index]);
  const [before, added] = [readRecord(known['function']), readRecord(piece['function'])];
  const args = readText(before['arguments']) + readText(added['arguments']);
  calls[index] = { ...piece, ...known, function: { ...added, ...before, arguments: args } };
}

/** Sends usage in the chunk before its own, which has the end of the last choice. */
export function joinUsage(chunks: readonly JsonRecord[]): JsonRecord[] {
  const last = chunks.at(-1);
  const finish = chunks.at(-2);
  if (last === undefined || finish === undefined) return [...chunks];
  if (!isRecord(last['usage']) || readRecords(last['choices']).length > 0) return [...chunks];
  return [...chunks.slice(0, -2), { ...finish, usage: last['usage'] }];
}
