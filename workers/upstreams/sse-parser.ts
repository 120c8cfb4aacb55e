import { createParser } from 'eventsource-parser';
import { UpstreamError } from './upstream.ts';

export interface SseEvent {
  /** The `event:` field; `message` if the stream names none. */
  readonly event: string;
  /** The `data:` lines of the event, joined with a line feed. */
  readonly data: string;
}

export interface SseParser {
  /**
   * Takes the next bytes, split anywhere, and returns the events they complete. Throws UpstreamError beyond the
   * limit.
   */
  push(bytes: Uint8Array): SseEvent[];
  /**
   * Called when the body ended. Many servers leave out the blank line after their last event, so a pending
   * event counts.
   */
  end(): SseEvent[];
}

const lineFeed = 10;
const carriageReturn = 13;
const byteOrderMark = '\uFEFF';
/** Capacity for an unfinished line that is kept from one line to the next. */
const reusedBytes = 64 * 1024;
const defaultMaxEventLength = 1024 * 1024;

/**
 * Parses server-sent events as the WHATWG HTML standard defines them (section 9.2.6), except that an event
 * pending at the end counts.
 * @param options.maxEventLength limit for the data of an event, in characters, and for a line, in bytes
 */
export function createSseParser({ maxEventLength = defaultMaxEventLength } = {}): SseParser {
  let events: SseEvent[] = [];
  const refuse = (): never => {
    throw new UpstreamError(
      'unavailable',
      `the stream holds a line or an event over ${maxEventLength} characters`,
    );
  };
  const parser = createParser({
    maxBufferSize: maxEventLength,
    onEvent({ event = 'message', data }) {
      // The parser's own limit is for what it keeps from one chunk to the next.
      if (data.length > maxEventLength) refuse();
      events.push({ event, data });
    },
    // Unknown fields are ignored, as the standard asks.
    onError: ({ type }) => {
      if (type === 'max-buffer-size-exceeded') refuse();
    },
  });

  /**
   * An unfinished line, copied into a buffer that doubles: a list of small pieces, as the parser would keep it, takes
   * more memory than the pieces.
   */
  let kept: Buffer = Buffer.alloc(0);
  let storedBytes = 0;

  function keep(piece: Buffer): void {
    const length = storedBytes + piece.length;
    if (length > kept.length) {
      const larger = Buffer.allocUnsafe(Math.max(length, 2 * kept.length));
      kept.copy(larger, 0, 0, storedBytes);
      kept = larger;
    }
    piece.copy(kept, storedBytes);
    storedBytes = length;
  }

  function keepUnfinished(piece: Buffer): void {
    if (storedBytes + piece.length > maxEventLength) refuse();
    keep(piece);
  }

  /** The text of what is kept and of whole lines that follow it. Characters are never split between two lines. */
  function takeText(lines: Buffer): string {
    if (storedBytes === 0) return lines.toString();
    keep(lines);
    const text = kept.toString('utf8', 0, storedBytes);
    storedBytes = 0;
    if (kept.length > reusedBytes) kept = Buffer.alloc(0);
    return text;
  }

  let isFirst = true;

  function feed(text: string): SseEvent[] {
    events = [];
    parser.feed(isFirst && text.startsWith(byteOrderMark) ? text.slice(1) : text);
    isFirst = false;
    return events;
  }

  return {
    push(bytes) {
      const chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      const end = Math.max(chunk.lastIndexOf(lineFeed), chunk.lastIndexOf(carriageReturn)) + 1;
      if (end === 0) {
        keepUnfinished(chunk);
        return [];
      }
      const found = feed(takeText(chunk.subarray(0, end)));
      if (end < chunk.length) keepUnfinished(chunk.subarray(end));
      return found;
    },
    end: () => feed(`${takeText(Buffer.alloc(0))}\n\n`),
  };
}
