import { UpstreamError } from './upstream.ts';

export interface SseEvent {
  /** The `event:` field; `message` where the stream names none. */
  readonly event: string;
  /** The `data:` lines of the event, joined with a line feed. */
  readonly data: string;
}

export interface SseParser {
  /** Takes the next bytes, split anywhere, and returns the events they complete. Throws UpstreamError past a bound. */
  push(bytes: Uint8Array): SseEvent[];
  /** The body ended. Many servers leave out the blank line after their last event, so what is pending counts. */
  end(): SseEvent[];
}

const LF = 10;
const CR = 13;
const COLON = 58;
const SPACE = 32;
const DEFAULT_MAX_LINE_BYTES = 1024 * 1024;

/**
 * Server-sent events as the WHATWG HTML standard defines them (section 9.2.6), but for the pending event at the end.
 * Lines are cut from bytes and decoded whole, so a character split between two chunks needs no care. The bound holds
 * for a line and for all data of an event.
 */
export function createSseParser({ maxLineBytes = DEFAULT_MAX_LINE_BYTES } = {}): SseParser {
  let pieces: Buffer[] = [];
  let piecesBytes = 0;
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

  function joinPieces(last: Buffer): Buffer {
    if (pieces.length === 0) {
      return last;
    }
    const line = Buffer.concat([...pieces, last], piecesBytes + last.length);
    pieces = [];
    piecesBytes = 0;
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
          pieces.push(chunk.subarray(position));
          piecesBytes += chunk.length - position;
          checkLength(piecesBytes);
          break;
        }
        checkLength(piecesBytes + end - position);
        takeLine(joinPieces(chunk.subarray(position, end)), events);
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
      if (piecesBytes > 0) {
        takeLine(joinPieces(Buffer.alloc(0)), events);
      }
      dispatch(events);
      return events;
    },
  };
}
