import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';

/** In order of preference. */
export const contentCodings = ['br', 'gzip'] as const;
export type ContentCoding = (typeof contentCodings)[number];

/** A body in one content coding. */
export interface Representation {
  readonly bytes: Buffer;
  /** A strong ETag, unique to these bytes: the same body in another coding has a different one. */
  readonly etag: string;
}

/** A smaller body fits into one packet without compression. */
const minCompressedBytes = 1_024;
/** Images and fonts other than these are compressed already. */
const compressibleType = /^(?:text\/|application\/(?:json|javascript|manifest\+json)|image\/svg\+xml)/;

const compressBrotli = promisify(brotliCompress);
const compressGzip = promisify(gzip);

export type Compressor = (bytes: Buffer) => Promise<Buffer>;

/** Compressors run in Node's thread pool. */
const defaultCompressors: Readonly<Record<ContentCoding, Compressor>> = {
  br: (bytes) => compressBrotli(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
  gzip: (bytes) => compressGzip(bytes, { level: 9 }),
};

/** A body that many callers receive unchanged. Its bytes, ETag and compressed forms are computed once. */
export class PreparedBody {
  readonly contentType: string;
  readonly isCompressible: boolean;
  readonly #plain: Representation;
  readonly #hash: string;
  readonly #compressed = new Map<ContentCoding, Promise<Representation>>();

  readonly #compressors: Readonly<Record<ContentCoding, Compressor>>;

  /** @param compressors for a body that was compressed before, functions that return the result */
  constructor(content: string | Buffer, contentType: string, compressors = defaultCompressors) {
    this.#compressors = compressors;
    const bytes = typeof content === 'string' ? Buffer.from(content) : content;
    this.contentType = contentType;
    this.isCompressible = bytes.length >= minCompressedBytes && compressibleType.test(contentType);
    this.#hash = createHash('sha256').update(bytes).digest('base64url').slice(0, 22);
    this.#plain = { bytes, etag: `"${this.#hash}"` };
  }

  static ofJson(value: unknown): PreparedBody {
    return new PreparedBody(JSON.stringify(value), 'application/json; charset=utf-8');
  }

  get plain(): Representation {
    return this.#plain;
  }

  /** Compresses on the first call for a coding; concurrent callers share the work. A failure is not cached. */
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

/** Caches bodies until the state that they present changes. */
export class PreparedBodies {
  #state: readonly unknown[] = [];
  readonly #bodies = new Map<string, PreparedBody>();

  /**
   * @param state objects that the bodies are built from; once one of them is replaced, all bodies are rebuilt
   * @param key identifies the body; the number of keys must be bounded
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
