// decision 0063
import { createParser } from 'eventsource-parser';
import { UpstreamError } from './upstream.ts';

export interface SseEvent {
  /** The `event:` field; `message` if there is none. */
  readonly event: string;
  /** The `data:` lines of the event, joined with a line feed. */
  readonly data: string;
}

export interface SseParser {
  /**
   * Takes the next bytes, which may be split anywhere, and returns the events that they complete.
   * @throws UpstreamError if an event exceeds the limit
   */
  push(bytes: Uint8Array): SseEvent[];
  /**
   * Called when the body has ended. Many servers omit the blank line after their last event, so a pending event is
   * returned.
   */
  end(): SseEvent[];
}

const lineFeed = 10;
const carriageReturn = 13;
const byteOrderMark = '\uFEFF';
/** A buffer for unfinished lines is reused up to this size. */
const reusedBytes = 64 * 1024;
const defaultMaxEventLength = 1024 * 1024;

/**
 * Parses server-sent events as defined by the WHATWG HTML standard (section 9.2.6), except that an event that is
 * pending at the end is returned.
 * @param options.maxEventLength limit for the data of an event, in characters, and for a line, in bytes
 */
export function createSseParser({ maxEventLength = defaultMaxEventLength } = {}): SseParser {
  let events: SseEvent[] = [];
  const throwTooLong = (): never => {
    throw new UpstreamError(
      'unavailable',
      `the stream contains a line or an event of more than ${maxEventLength} characters`,
    );
  };
  const parser = createParser({
    maxBufferSize: maxEventLength,
    onEvent({ event = 'message', data }) {
      // The parser's limit only applies to data that it buffers between chunks.
      if (data.length > maxEventLength) throwTooLong();
      events.push({ event, data });
    },
    // Unknown fields are ignored, as the standard requires.
    onError: ({ type }) => {
      if (type === 'max-buffer-size-exceeded') throwTooLong();
    },
  });

  /**
   * An unfinished line is copied into a buffer that doubles in size. The parser would store a list of small pieces,
   * which takes more memory than the pieces.
   */
  let buffer: Buffer = Buffer.alloc(0);
  let bufferedBytes = 0;

  function append(piece: Buffer): void {
    const length = bufferedBytes + piece.length;
    if (length > buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(length, 2 * buffer.length));
      buffer.copy(larger, 0, 0, bufferedBytes);
      buffer = larger;
    }
    piece.copy(buffer, bufferedBytes);
    bufferedBytes = length;
  }

  function appendUnfinished(piece: Buffer): void {
    if (bufferedBytes + piece.length > maxEventLength) throwTooLong();
    append(piece);
  }

  /** Returns the buffered text and the complete lines that follow it. Characters are never split between two lines. */
  function takeText(lines: Buffer): string {
    if (bufferedBytes === 0) return lines.toString();
    append(lines);
    const text = buffer.toString('utf8', 0, bufferedBytes);
    bufferedBytes = 0;
    if (buffer.length > reusedBytes) buffer = Buffer.alloc(0);
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
        appendUnfinished(chunk);
        return [];
      }
      const newEvents = feed(takeText(chunk.subarray(0, end)));
      if (end < chunk.length) appendUnfinished(chunk.subarray(end));
      return newEvents;
    },
    end: () => feed(`${takeText(Buffer.alloc(0))}\n\n`),
  };
}
