import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';

/** In the order in which we like them. */
export const contentCodings = ['br', 'gzip'] as const;
export type ContentCoding = (typeof contentCodings)[number];

/** A body as it is sent in one content coding. */
export interface Representation {
  readonly bytes: Buffer;
  /** Strong: no other bytes have it, also not the same body in another coding. */
  readonly etag: string;
}

/** A smaller body fits into one packet as it is. */
const compressFromBytes = 1_024;

const compressBrotli = promisify(brotliCompress);
const compressGzip = promisify(gzip);

type Compressor = (bytes: Buffer) => Promise<Buffer>;

/** These run in the thread pool. */
const defaultCompressors: Readonly<Record<ContentCoding, Compressor>> = {
  br: (bytes) => compressBrotli(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
  gzip: (bytes) => compressGzip(bytes, { level: 9 }),
};

/** A body that is given to many callers as it is: its bytes, tag and compressed forms are made once. */
export class PreparedBody {
  readonly contentType: string;
  readonly isCompressible: boolean;
  readonly #plain: Representation;
  readonly #hash: string;
  readonly #compressed = new Map<ContentCoding, Promise<Representation>>();

  readonly #compressors: Readonly<Record<ContentCoding, Compressor>>;

  constructor(text: string, contentType: string, compressors = defaultCompressors) {
    this.#compressors = compressors;
    const bytes = Buffer.from(text);
    this.contentType = contentType;
    this.isCompressible = bytes.length >= compressFromBytes;
    this.#hash = createHash('sha256').update(bytes).digest('base64url').slice(0, 22);
    this.#plain = { bytes, etag: `"${this.#hash}"` };
  }

  static ofJson(value: unknown): PreparedBody {
    return new PreparedBody(JSON.stringify(value), 'application/json; charset=utf-8');
  }

  get plain(): Representation {
    return this.#plain;
  }

  /** Compresses at the first call for a coding; callers who come together wait for the same. A failure is not kept. */
  async compress(coding: ContentCoding): Promise<Representation> {
    let compressed = this.#compressed.get(coding);
    if (compressed === undefined) {
      compressed = this.#compress(coding);
      this.#compressed.set(coding, compressed);
    }
    try {
      return await compressed;
    } catch (error) {
      if (this.#compressed.get(coding) === compressed) this.#compressed.delete(coding);
      throw error;
    }
  }

  async #compress(coding: ContentCoding): Promise<Representation> {
    const bytes = await this.#compressors[coding](this.#plain.bytes);
    return { bytes, etag: `"${this.#hash}-${coding}"` };
  }
}

/** Bodies that stay the same for as long as what they show does. */
export class PreparedBodies {
  #state: readonly unknown[] = [];
  readonly #bodies = new Map<string, PreparedBody>();

  /**
   * @param state what the bodies are made of: they are made anew once one of these is another object
   * @param key which of the bodies of this state; there must be a bounded number of them
   */
  get(state: readonly unknown[], key: string, make: () => PreparedBody): PreparedBody {
    if (state.some((part, i) => part !== this.#state[i])) {
      this.#bodies.clear();
      this.#state = state;
    }
    let body = this.#bodies.get(key);
    if (body === undefined) {
      body = make();
      this.#bodies.set(key, body);
    }
    return body;
  }
}
