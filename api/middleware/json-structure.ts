import { maxJsonDepth, maxJsonValues, type JsonFault } from '../../shared/runtime/json-reader.ts';

const [quote, backslash, comma] = [0x22, 0x5c, 0x2c];
const [openObject, closeObject, openArray, closeArray] = [0x7b, 0x7d, 0x5b, 0x5d];

/**
 * Measures a JSON text as it arrives, byte by byte: how deep it is nested and how many values it holds. Parsing costs
 * seconds and gigabytes for a body of millions of empty objects; looking at its bytes costs next to nothing. It does
 * not check the text: what is not JSON is the parser's to refuse. For small bodies, which JSON.parse reads faster than
 * anything written by us; JsonReader measures large ones itself.
 */
export class JsonStructure {
  #depth = 0;
  #values = 1;
  #inString = false;
  #isEscaped = false;

  /** The first fault found so far. */
  push(chunk: Uint8Array): JsonFault | null {
    for (const byte of chunk) {
      if (this.#inString) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (byte === backslash) this.#isEscaped = true;
        else if (byte === quote) this.#inString = false;
      } else if (byte === quote) {
        this.#inString = true;
      } else if (byte === openObject || byte === openArray) {
        this.#depth += 1;
        this.#values += 1;
        if (this.#depth > maxJsonDepth) return 'too_deep';
      } else if (byte === closeObject || byte === closeArray) {
        this.#depth -= 1;
      } else if (byte === comma) {
        this.#values += 1;
      }
    }
    return this.#values > maxJsonValues ? 'too_many_values' : null;
  }
}
