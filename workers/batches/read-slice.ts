import type { ObjectStore } from '../../shared/platform/storage/object-store.ts';

/** The lines of a file that begin within `from` and `to`. */
export interface ByteSlice {
  readonly key: string;
  readonly from: number;
  readonly to: number;
  /** Of the whole file. */
  readonly byteLength: number;
}

/** A line that is not blank. */
export interface SliceLine {
  /** Its number in the slice, from 0. The same in every attempt. */
  readonly index: number;
  /** Without its line break. Only the first bytes of a line that is too long. */
  readonly bytes: Buffer;
  readonly byteLength: number;
}

/** Bytes per read. Most slices need one or two. */
const readBytes = 1024 * 1024;

const newline = 0x0a;

/** Thrown if the object is gone or shorter than it was. */
export class InputLost extends Error {
  override readonly name = 'InputLost';
}

/**
 * Reads the lines of a slice, in order, all those of a read at once. Reads beyond the end of the slice to the end of its last line.
 * @param maxLineBytes of a longer line, only this many bytes are kept
 * @throws InputLost, or any error of the object store
 */
export async function* readSlice(
  objects: Pick<ObjectStore, 'getRange'>,
  { key, from, to, byteLength }: ByteSlice,
  { maxLineBytes, signal }: { readonly maxLineBytes: number; readonly signal: AbortSignal },
): AsyncGenerator<SliceLine[], void> {
  const line = new LineBuffer(maxLineBytes);
  // A line that begins before the slice belongs to the previous one. It ends at the first line break from here on.
  let isSkipping = from > 0;
  let at = isSkipping ? from - 1 : 0;
  let lineStart = at;
  let index = 0;
  while (at < byteLength) {
    // A line that began before the slice goes on behind it: none begins within it.
    if (isSkipping && at >= to) return;
    const wanted = Math.min(readBytes, byteLength - at);
    const chunk = await objects.getRange(key, at, wanted, signal);
    if (chunk === null || chunk.length < wanted)
      throw new InputLost(`the object ends before byte ${at + wanted}`);
    const lines: SliceLine[] = [];
    let start = 0;
    while (start < chunk.length) {
      if (!isSkipping && line.byteLength === 0 && lineStart >= to) {
        yield lines;
        return;
      }
      const end = chunk.indexOf(newline, start);
      const stop = end === -1 ? chunk.length : end;
      if (!isSkipping) line.add(chunk.subarray(start, stop));
      start = stop + 1;
      if (end === -1) continue;
      lineStart = at + start;
      if (isSkipping) {
        isSkipping = false;
        continue;
      }
      const read = line.take();
      if (read !== null) lines.push({ index: index++, ...read });
    }
    yield lines;
    at += chunk.length;
  }
  const last = isSkipping ? null : line.take();
  if (last !== null) yield [{ index, ...last }];
}

/** Collects the pieces of a line, up to a maximum. */
class LineBuffer {
  readonly #maxBytes: number;
  #pieces: Buffer[] = [];
  #keptBytes = 0;
  byteLength = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  add(piece: Buffer): void {
    this.byteLength += piece.length;
    const kept = piece.subarray(0, this.#maxBytes - this.#keptBytes);
    this.#keptBytes += kept.length;
    if (kept.length > 0) this.#pieces.push(kept);
  }

  /** Returns the line, and null if it is blank. */
  take(): Pick<SliceLine, 'bytes' | 'byteLength'> | null {
    const bytes = this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces);
    const { byteLength } = this;
    this.#pieces = [];
    this.#keptBytes = 0;
    this.byteLength = 0;
    return isBlank(bytes) ? null : { bytes, byteLength };
  }
}

/** Space, tab and carriage return. */
function isBlank(bytes: Buffer): boolean {
  for (const byte of bytes) if (byte !== 0x20 && byte !== 0x09 && byte !== 0x0d) return false;
  return true;
}
