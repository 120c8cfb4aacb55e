import { nextWorkTurn } from '../fairness/work-turns.ts';
import { JsonReader } from './json-reader.ts';

/** Up to here JSON.parse is quicker than anything written by us, and holds nothing up. */
const smallBytes = 256 * 1024;
/** Of many small values this takes as long as a turn may. */
const sliceBytes = 64 * 1024;
const turnMs = 4;

/** What is read here has been admitted already, or is a vendor's, which may be as deep as JSON.parse reads it. */
const noLimits = { depth: Infinity, values: Infinity, loneSurrogates: true, integers: 0 };

/**
 * The value of a JSON text that comes in chunks, or null where it is none. A large text is read as it comes, in turns of
 * the account, and its bytes are not kept.
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
  /** On reading, since its turn began. */
  #spentMs = 0;

  constructor(accountId: string) {
    this.#accountId = accountId;
  }

  /** @returns whether it may still be JSON */
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
      // Where it is wrong is nothing that anybody is told.
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
