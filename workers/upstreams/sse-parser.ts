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

const LF = 10;
const CR = 13;
const COLON = 58;
const SPACE = 32;
const DEFAULT_MAX_LINE_BYTES = 1024 * 1024;
/** Capacity for an unfinished line that is kept from one line to the next. */
const KEPT_BYTES = 64 * 1024;

/**
 * Parses server-sent events as the WHATWG HTML standard defines them (section 9.2.6), except that an event
 * pending at the end counts. Lines are cut as bytes and decoded whole, so a character split between two chunks
 * needs no care. The limit applies to a line and to all data of an event.
 */
export function createSseParser({ maxLineBytes = DEFAULT_MAX_LINE_BYTES } = {}): SseParser {
  /**
   * An unfinished line, copied into a buffer that doubles. A list of small pieces would take more memory than
   * the pieces.
   */
  let room: Buffer = Buffer.alloc(0);
  let pendingBytes = 0;
  let isFirstLine = true;
  let skipsLineFeed = false;
  let event = '';
  let data: string | null = null;

  function takeLine(line: Buffer, events: SseEvent[]): void {
    const start = isFirstLine && line[0] === 0xef && line[1] === 0xbb && line[2] === 0xbf ? 3 : 0;
    isFirstLine = false;
    if (line.length === start) {
      dispatch(events);
      return;
    }
    const colon = line.indexOf(COLON, start);
    if (colon === start) {
      return;
    }
    const nameEnd = colon === -1 ? line.length : colon;
    const name = line.toString('latin1', start, nameEnd);
    if (name !== 'data' && name !== 'event') {
      return;
    }
    const valueStart = line[nameEnd + 1] === SPACE ? nameEnd + 2 : nameEnd + 1;
    const value = line.toString('utf8', valueStart);
    if (name === 'event') {
      event = value;
      return;
    }
    const joined: string = data === null ? value : `${data}\n${value}`;
    checkLength(joined.length);
    data = joined;
  }

  function dispatch(events: SseEvent[]): void {
    if (data !== null) {
      events.push({ event: event === '' ? 'message' : event, data });
    }
    event = '';
    data = null;
  }

  function checkLength(length: number): void {
    if (length > maxLineBytes) {
      throw new UpstreamError(
        'unavailable',
        `the stream holds a line or an event over ${maxLineBytes} bytes`,
      );
    }
  }

  function keep(piece: Buffer): void {
    const length = pendingBytes + piece.length;
    if (length > room.length) {
      const larger = Buffer.allocUnsafe(Math.max(length, 2 * room.length));
      room.copy(larger, 0, 0, pendingBytes);
      room = larger;
    }
    piece.copy(room, pendingBytes);
    pendingBytes = length;
  }

  /** The returned line must be read before anything else is stored in the buffer. */
  function endLine(last: Buffer): Buffer {
    if (pendingBytes === 0) {
      return last;
    }
    keep(last);
    const line = room.subarray(0, pendingBytes);
    pendingBytes = 0;
    if (room.length > KEPT_BYTES) {
      room = Buffer.alloc(0);
    }
    return line;
  }

  return {
    push(bytes) {
      const events: SseEvent[] = [];
      const chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      let position = 0;
      if (chunk.length > 0 && skipsLineFeed) {
        skipsLineFeed = false;
        position = chunk[0] === LF ? 1 : 0;
      }
      let nextCr = chunk.indexOf(CR, position);
      while (position < chunk.length) {
        const nextLf = chunk.indexOf(LF, position);
        if (nextCr !== -1 && nextCr < position) {
          nextCr = chunk.indexOf(CR, position);
        }
        const endsWithCr = nextCr !== -1 && (nextLf === -1 || nextCr < nextLf);
        const end = endsWithCr ? nextCr : nextLf;
        if (end === -1) {
          checkLength(pendingBytes + chunk.length - position);
          keep(chunk.subarray(position));
          break;
        }
        checkLength(pendingBytes + end - position);
        takeLine(endLine(chunk.subarray(position, end)), events);
        position = end + 1;
        if (endsWithCr) {
          if (position === chunk.length) {
            skipsLineFeed = true;
          } else if (chunk[position] === LF) {
            position += 1;
          }
        }
      }
      return events;
    },

    end() {
      const events: SseEvent[] = [];
      if (pendingBytes > 0) {
        takeLine(endLine(Buffer.alloc(0)), events);
      }
      dispatch(events);
      return events;
    },
  };
}
