import { nextWorkTurn } from '../../shared/fairness/work-turns.ts';
import { JsonReader } from '../../shared/encoding/json-reader.ts';

/** Up to this size JSON.parse is faster than our reader and does not block noticeably. */
const smallBytes = 256 * 1024;
/** Bytes read between two checks of the time. If they hold many small values, reading them may take a whole turn. */
const sliceBytes = 64 * 1024;
const turnMs = 4;

/** The text was admitted earlier, or comes from a vendor and may be as deep as JSON.parse allows. */
const noLimits = { depth: Infinity, values: Infinity, loneSurrogates: true, integers: 0 };

/**
 * Parses a JSON text that arrives in chunks. Returns null if it is not valid JSON. A large text is parsed as it
 * arrives, in the account's work turns, and its bytes are not retained.
 */
export async function readJson(
  chunks: AsyncIterable<Buffer>,
  accountId: string,
): Promise<{ readonly value: unknown } | null> {
  const reading = new JsonReading(accountId);
  for await (const chunk of chunks) {
    if (!(await reading.take(chunk))) return null;
  }
  return reading.end();
}

class JsonReading {
  readonly #accountId: string;
  #small: Buffer[] = [];
  #smallBytes = 0;
  #reader: JsonReader | null = null;
  /** Time spent reading since the turn began. */
  #spentMs = 0;

  constructor(accountId: string) {
    this.#accountId = accountId;
  }

  /** @returns whether the text can still be valid JSON */
  async take(chunk: Buffer): Promise<boolean> {
    if (this.#reader !== null) return await this.#read(this.#reader, chunk);
    this.#small.push(chunk);
    this.#smallBytes += chunk.length;
    if (this.#smallBytes <= smallBytes) return true;
    this.#reader = new JsonReader(noLimits);
    const first = this.#small;
    this.#small = [];
    for (const one of first) {
      if (!(await this.#read(this.#reader, one))) return false;
    }
    return true;
  }

  end(): { readonly value: unknown } | null {
    if (this.#reader !== null) return this.#reader.end();
    try {
      return { value: JSON.parse(Buffer.concat(this.#small).toString('utf8')) as unknown };
    } catch {
      // The position of the error is not reported.
      return null;
    }
  }

  async #read(reader: JsonReader, chunk: Buffer): Promise<boolean> {
    for (let at = 0; at < chunk.length; at += sliceBytes) {
      const startedMs = performance.now();
      if (reader.push(chunk.subarray(at, at + sliceBytes)) !== null) return false;
      this.#spentMs += performance.now() - startedMs;
      if (this.#spentMs < turnMs) continue;
      this.#spentMs = 0;
      await nextWorkTurn(this.#accountId);
    }
    return true;
  }
}
