const LF = 10;
const CR = 13;
const TAB = 9;
const SPACE = 32;
const OPENING_BRACE = 123;
const OPENING_BRACKET = 91;

export interface BareJsonCutter {
  /** Returns the bytes that are event lines. The first line that is JSON, and everything after it, is held back. */
  cut(bytes: Uint8Array): Uint8Array;
  /** Returns the text that was held back; null if there is none. */
  readText(): string | null;
  readonly byteLength: number;
}

/**
 * Finds JSON in a stream that is not part of an event, which is how Gemini writes its errors. No event line begins
 * with a brace or a bracket, and event parsers must ignore lines that do.
 */
export function createBareJsonCutter(): BareJsonCutter {
  const bareJson: Buffer[] = [];
  let byteLength = 0;
  let isAtLineStart = true;

  function findStart(chunk: Buffer): number {
    let position = 0;
    while (position < chunk.length) {
      if (!isAtLineStart) {
        const end = chunk.indexOf(LF, position);
        if (end === -1) {
          return chunk.length;
        }
        position = end + 1;
        isAtLineStart = true;
        continue;
      }
      const byte = chunk[position];
      if (byte === OPENING_BRACE || byte === OPENING_BRACKET) {
        return position;
      }
      isAtLineStart = byte === LF || byte === CR || byte === TAB || byte === SPACE;
      position += 1;
    }
    return chunk.length;
  }

  return {
    cut(bytes) {
      const chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      const start = byteLength > 0 ? 0 : findStart(chunk);
      if (start < chunk.length) {
        bareJson.push(chunk.subarray(start));
        byteLength += chunk.length - start;
      }
      return chunk.subarray(0, start);
    },

    readText: () => (byteLength === 0 ? null : Buffer.concat(bareJson, byteLength).toString('utf8')),

    get byteLength() {
      return byteLength;
    },
  };
}
