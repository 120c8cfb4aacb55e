import { takeInTurns } from '../fairness/work-turns.ts';
import { isFirstHalf } from './surrogate-check.ts';

/** Characters of one piece: well under a millisecond to write, hash or encode. */
const pieceChars = 64 * 1024;

interface Frame {
  readonly values: readonly unknown[];
  /** The keys of an object; null in an array. */
  readonly keys: readonly string[] | null;
  next: number;
  isFirst: boolean;
}

/**
 * The text that `JSON.stringify` makes of plain data, in pieces: what would hold up the event loop for a large value in
 * one go can let other work run between two of them. `toJSON` is not called.
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

/** What comes before the frame's next value; null after the last. A member that is undefined is left out. */
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

/** Not within a surrogate pair: each half by itself would be written as an escape. */
function findPieceEnd(text: string, at: number): number {
  const end = at + pieceChars;
  if (end >= text.length) return text.length;
  const code = text.charCodeAt(end - 1);
  return isFirstHalf(code) ? end - 1 : end;
}

/** Whether a value's JSON has more than so many characters, or nearly; looks at no more than it must to know. */
export function isLongJson(value: unknown, chars: number): boolean {
  const pending: unknown[] = [value];
  let left = chars;
  while (pending.length > 0 && left >= 0) {
    const current = pending.pop();
    if (typeof current === 'string') left -= current.length;
    else if (Array.isArray(current)) {
      left -= current.length;
      if (left >= 0) for (const item of current as unknown[]) pending.push(item);
    } else if (typeof current === 'object' && current !== null) {
      for (const key in current) {
        left -= key.length + 1;
        pending.push((current as Record<string, unknown>)[key]);
      }
    } else left -= 1;
  }
  return left < 0;
}

/** The JSON of a value in UTF-8, as buffers that follow one another: a large value is written in turns of the account. */
export async function encodeJson(value: object, accountId: string): Promise<readonly Buffer[]> {
  if (!isLongJson(value, pieceChars)) return [Buffer.from(JSON.stringify(value))];
  const pieces: Buffer[] = [];
  await takeInTurns(writeJson(value), accountId, (piece) => {
    pieces.push(Buffer.from(piece));
  });
  return pieces;
}

/** The JSON of a large value in UTF-8, written in turns of the account. */
export async function encodeLargeJson(value: object, accountId: string): Promise<Buffer> {
  const pieces = await encodeJson(value, accountId);
  const whole = Buffer.allocUnsafe(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  // Copying is slow where memory is touched for the first time.
  await takeInTurns(pieces, accountId, (bytes) => {
    at += bytes.copy(whole, at);
  });
  return whole;
}
