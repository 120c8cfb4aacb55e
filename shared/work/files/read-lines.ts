import { nextWorkTurn } from '../../fairness/work-turns.ts';
import type { ObjectStore } from '../../platform/storage/object-store.ts';
import { findTextStart } from './byte-order-mark.ts';
import { LineBuffer, type CollectedLine } from './line-buffer.ts';

/** The lines of an object that begin within `from` and `to`. */
export interface LineRange {
  readonly key: string;
  readonly from: number;
  readonly to: number;
  /** Of the whole object. */
  readonly byteLength: number;
}

/** A line that is not blank. */
export type FileLine = CollectedLine & {
  /** Its number in the range, from 0. The same each time. */
  readonly index: number;
  /** Where it begins in the object. */
  readonly start: number;
};

export interface LineReading {
  /** In whose event-loop turns long lines are read. */
  readonly accountId: string;
  /** Of a longer line, only the `custom_id` is found. */
  readonly maxLineBytes: number;
  readonly signal: AbortSignal;
}

/** Bytes per read. Most slices of a batch need one or two. */
const readBytes = 1024 * 1024;

/** Blank lines are not passed on, and each takes a byte. */
const lineBreaksPerTurn = 4_096;

const newline = 0x0a;

/** Thrown if the object is gone or shorter than it was. */
export class InputLost extends Error {
  override readonly name = 'InputLost';
}

/**
 * Reads the lines that begin in a range, in order. Reads beyond the range only to the end of its last line.
 * @throws InputLost, or any error of the object store
 */
export async function* readLines(
  objects: Pick<ObjectStore, 'getRange'>,
  { key, from, to, byteLength }: LineRange,
  { accountId, maxLineBytes, signal }: LineReading,
): AsyncGenerator<FileLine> {
  const line = new LineBuffer(accountId, maxLineBytes);
  // A line that begins before the range belongs to the previous one. It ends at the first line break from here on.
  let isSkipping = from > 0;
  let at = isSkipping ? from - 1 : 0;
  let lineStart = at;
  /** Where the first line of the object has its first byte. */
  let textStart = 0;
  let index = 0;
  let lineBreaks = 0;
  /** Whether no more lines begin in the range. @param next the position of the next byte */
  const hasEnded = (next: number): boolean =>
    isSkipping ? next >= to - 1 : line.byteLength === 0 && lineStart >= to;
  while (at < byteLength && !hasEnded(at)) {
    const chunk = await readRange(objects, key, at, Math.min(readBytes, byteLength - at), signal);
    let start = 0;
    if (at === 0) textStart = start = findTextStart(chunk);
    while (start < chunk.length && !hasEnded(at + start)) {
      const end = chunk.indexOf(newline, start);
      const stop = end === -1 ? chunk.length : end;
      if (!isSkipping) {
        const reading = line.add(chunk.subarray(start, stop));
        if (reading !== undefined) await reading;
      }
      start = stop + 1;
      if (end === -1) continue;
      if (++lineBreaks % lineBreaksPerTurn === 0) await nextWorkTurn(accountId);
      const read = isSkipping ? null : line.take();
      if (read !== null) yield { index: index++, start: Math.max(lineStart, textStart), ...read };
      isSkipping = false;
      lineStart = at + start;
    }
    at += chunk.length;
  }
  const last = isSkipping ? null : line.take();
  if (last !== null) yield { index, start: Math.max(lineStart, textStart), ...last };
}

/**
 * Reads bytes of an object, in pieces.
 * @throws InputLost, or any error of the object store
 */
export async function* readPieces(
  objects: Pick<ObjectStore, 'getRange'>,
  key: string,
  { from, to }: Pick<LineRange, 'from' | 'to'>,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  for (let at = from; at < to; at += readBytes)
    yield await readRange(objects, key, at, Math.min(readBytes, to - at), signal);
}

async function readRange(
  objects: Pick<ObjectStore, 'getRange'>,
  key: string,
  from: number,
  byteLength: number,
  signal: AbortSignal,
): Promise<Buffer> {
  const chunk = await objects.getRange(key, from, byteLength, signal);
  if (chunk !== null && chunk.length === byteLength) return chunk;
  throw new InputLost(`the object ends before byte ${from + byteLength}`);
}
