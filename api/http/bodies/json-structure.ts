// decision 0011
import { maxJsonDepth, maxJsonValues, type JsonError } from '../../../shared/encoding/json-reader.ts';

const [quote, backslash, comma] = [0x22, 0x5c, 0x2c];
const [openObject, closeObject, openArray, closeArray] = [0x7b, 0x7d, 0x5b, 0x5d];

/**
 * Measures the nesting depth and the number of values of a JSON text as it arrives. Parsing a body of millions of empty
 * objects takes seconds and gigabytes; scanning its bytes takes almost nothing. Does not validate the text; the parser
 * does that. Used only for small bodies, because JSON.parse is fastest for them. Large bodies are parsed by JsonReader,
 * which measures them itself.
 */
export class JsonStructure {
  #depth = 0;
  #values = 1;
  #inString = false;
  #isEscaped = false;

  /** @returns the limit exceeded so far; null if none is */
  push(chunk: Uint8Array): JsonError | null {
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
