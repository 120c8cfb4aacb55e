import { processInTurns } from '../fairness/work-turns.ts';
import { isFirstHalf } from '../platform/runtime/surrogate-check.ts';

/** Characters per piece. A piece takes well under a millisecond to write, hash or encode. */
const pieceChars = 64 * 1024;

interface Frame {
  readonly values: readonly unknown[];
  /** The keys of an object; null in an array. */
  readonly keys: readonly string[] | null;
  next: number;
  isFirst: boolean;
}

/**
 * Yields the text that `JSON.stringify` returns for plain data, in pieces. A large value does not block the event loop
 * if the caller lets other work run between pieces; `JSON.stringify` blocks it for 40 ms for 8 MB. `toJSON` is not
 * called.
 */
export function* writeJson(value: unknown): Generator<string> {
  const frames: Frame[] = [];
  let text = '';

  let current: unknown = value;
  for (;;) {
    if (typeof current === 'string' && current.length > pieceChars) {
      yield `${text}"`;
      for (let at = 0; at < current.length;) {
        const end = findPieceEnd(current, at);
        yield JSON.stringify(current.slice(at, end)).slice(1, -1);
        at = end;
      }
      text = '"';
    } else if (typeof current === 'object' && current !== null) {
      const isArray = Array.isArray(current);
      text += isArray ? '[' : '{';
      frames.push({
        values: isArray ? (current as unknown[]) : Object.values(current),
        keys: isArray ? null : Object.keys(current),
        next: 0,
        isFirst: true,
      });
    } else text += JSON.stringify(current) ?? 'null';

    let frame = frames.at(-1);
    let prefix: string | null = null;
    while (frame !== undefined && (prefix = startNext(frame)) === null) {
      text += frame.keys === null ? ']' : '}';
      frames.pop();
      frame = frames.at(-1);
    }
    if (frame === undefined) break;
    text += prefix;
    current = frame.values[frame.next - 1];
    if (text.length >= pieceChars) {
      yield text;
      text = '';
    }
  }
  yield text;
}

/** Returns the text before the frame's next value, or null after the last one. Skips undefined members. */
function startNext(frame: Frame): string | null {
  const { keys, values } = frame;
  if (keys !== null) {
    while (frame.next < values.length && values[frame.next] === undefined) frame.next += 1;
  }
  if (frame.next >= values.length) return null;
  const separator = frame.isFirst ? '' : ',';
  const key = keys === null ? '' : `${JSON.stringify(keys[frame.next])}:`;
  frame.next += 1;
  frame.isFirst = false;
  return separator + key;
}

/** Never splits a surrogate pair: each half alone would be written as an escape. */
function findPieceEnd(text: string, at: number): number {
  const end = at + pieceChars;
  if (end >= text.length) return text.length;
  const code = text.charCodeAt(end - 1);
  return isFirstHalf(code) ? end - 1 : end;
}

/** Returns whether a value's JSON is longer than about this many characters. Stops as soon as that is certain. */
export function isLongJson(value: unknown, chars: number): boolean {
  const pending: unknown[] = [value];
  let remaining = chars;
  while (pending.length > 0 && remaining >= 0) {
    const current = pending.pop();
    if (typeof current === 'string') remaining -= current.length;
    else if (Array.isArray(current)) {
      remaining -= current.length;
      if (remaining >= 0) for (const item of current as unknown[]) pending.push(item);
    } else if (typeof current === 'object' && current !== null) {
      for (const key in current) {
        remaining -= key.length + 1;
        pending.push((current as Record<string, unknown>)[key]);
      }
    } else remaining -= 1;
  }
  return remaining < 0;
}

/** Encodes a value as JSON in UTF-8, as consecutive buffers. A large value is written in the account's work turns. */
export async function encodeJson(value: object, accountId: string): Promise<readonly Buffer[]> {
  if (!isLongJson(value, pieceChars)) return [Buffer.from(JSON.stringify(value))];
  const pieces: Buffer[] = [];
  await processInTurns(writeJson(value), accountId, (piece) => {
    pieces.push(Buffer.from(piece));
  });
  return pieces;
}

/** Like `encodeJson`, as one buffer. */
export async function encodeWholeJson(value: object, accountId: string): Promise<Buffer> {
  const pieces = await encodeJson(value, accountId);
  if (pieces.length === 1) return pieces[0]!;
  const whole = Buffer.allocUnsafe(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  // Copying is slow when memory is touched for the first time, so it is also split into turns.
  await processInTurns(pieces, accountId, (bytes) => {
    at += bytes.copy(whole, at);
  });
  return whole;
}
