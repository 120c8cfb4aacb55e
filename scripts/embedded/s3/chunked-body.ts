import { S3Error } from './errors.ts';
import { createHash } from 'node:crypto';
import { hashHex, isSameSignature, signText } from './signature.ts';

export interface ChunkSigning {
  signingKey: Buffer;
  timestamp: string;
  scope: string;
  /** The signature of the request, to which the first chunk's signature is chained. */
  seedSignature: string;
}

export interface ChunkedBodyOptions {
  /** If set, every chunk must have a signature, and so must trailers. */
  signing?: ChunkSigning | undefined;
  /** The trailers that the request announced, in lower case. Others are rejected, and none may be missing. */
  trailerNames: readonly string[];
  /** Whether this kind of body has trailers at all. */
  hasTrailers: boolean;
}

export interface ChunkedBody {
  chunks: AsyncIterable<Buffer>;
  /** Complete once all chunks have been read. */
  trailers: ReadonlyMap<string, string>;
}

const maxLineBytes = 1024;
const maxTrailerLines = 16;
const emptyHash = hashHex('');

/**
 * Decodes an aws-chunked body while it streams. The data of a signed chunk is verified only at the end of the chunk, so
 * the caller must not publish stored data before the iteration has finished.
 */
export function decodeChunkedBody(source: AsyncIterable<Buffer>, options: ChunkedBodyOptions): ChunkedBody {
  const trailers = new Map<string, string>();
  return { chunks: decode(source, options, trailers), trailers };
}

async function* decode(
  source: AsyncIterable<Buffer>,
  options: ChunkedBodyOptions,
  trailers: Map<string, string>,
): AsyncGenerator<Buffer, void, undefined> {
  const reader = new ByteReader(source);
  let previousSignature = options.signing?.seedSignature ?? '';
  try {
    for (;;) {
      const { size, signature } = parseChunkHeader(await reader.readLine());
      const hash = createHash('sha256');
      for (let remaining = size; remaining > 0;) {
        const bytes = await reader.readSome(remaining);
        remaining -= bytes.length;
        if (options.signing !== undefined) hash.update(bytes);
        yield bytes;
      }
      if (options.signing !== undefined) {
        previousSignature = verifyChunk(options.signing, previousSignature, hash.digest('hex'), signature);
      }
      if (size === 0) break;
      if ((await reader.readLine()) !== '') throw new S3Error('InvalidChunkSizeError');
    }
    const lines = await readTrailerLines(reader);
    verifyTrailers(lines, options, previousSignature, trailers);
  } finally {
    await reader.release();
  }
}

function parseChunkHeader(line: string): { size: number; signature: string | undefined } {
  const match = /^([\da-fA-F]{1,12})(?:;chunk-signature=([\da-f]{64}))?$/.exec(line);
  if (match === null) throw new S3Error('InvalidChunkSizeError');
  return { size: Number.parseInt(match[1] ?? '', 16), signature: match[2] };
}

function verifyChunk(
  signing: ChunkSigning,
  previousSignature: string,
  hash: string,
  provided: string | undefined,
): string {
  const expected = signText(
    signing.signingKey,
    `AWS4-HMAC-SHA256-PAYLOAD\n${signing.timestamp}\n${signing.scope}\n${previousSignature}\n${emptyHash}\n${hash}`,
  );
  if (!isSameSignature(expected, provided ?? '')) throw new S3Error('SignatureDoesNotMatch');
  return expected;
}

// Some clients omit the blank line after the trailers. In that case, the trailers end with the body.
async function readTrailerLines(reader: ByteReader): Promise<string[]> {
  const lines: string[] = [];
  while (!(await reader.isAtEnd())) {
    const line = await reader.readLine();
    if (line === '') break;
    lines.push(line);
    if (lines.length > maxTrailerLines) throw new S3Error('MalformedTrailerError');
  }
  if (!(await reader.isAtEnd())) throw new S3Error('MalformedTrailerError');
  return lines;
}

function verifyTrailers(
  lines: readonly string[],
  options: ChunkedBodyOptions,
  previousSignature: string,
  trailers: Map<string, string>,
): void {
  let signature: string | undefined;
  for (const line of lines) {
    const colon = line.indexOf(':');
    const name = line.slice(0, colon).trim().toLowerCase();
    const value = line.slice(colon + 1).trim();
    if (name === 'x-amz-trailer-signature') signature = value;
    else if (colon > 0 && options.trailerNames.includes(name) && !trailers.has(name))
      trailers.set(name, value);
    else throw new S3Error('MalformedTrailerError');
  }
  if (trailers.size !== options.trailerNames.length) throw new S3Error('MalformedTrailerError');
  if (options.signing === undefined || !options.hasTrailers) return;
  const { signing } = options;
  const canonical = [...trailers]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}:${value}\n`)
    .join('');
  const expected = signText(
    signing.signingKey,
    `AWS4-HMAC-SHA256-TRAILER\n${signing.timestamp}\n${signing.scope}\n${previousSignature}\n${hashHex(canonical)}`,
  );
  if (!isSameSignature(expected, signature ?? '')) throw new S3Error('SignatureDoesNotMatch');
}

/** Reads lines and bytes from a stream of buffers. Keeps only one buffer and one short line in memory. */
class ByteReader {
  readonly #source: AsyncIterator<Buffer>;
  #pending: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Buffer>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  async isAtEnd(): Promise<boolean> {
    while (this.#pending.length === 0) {
      const next = await this.#source.next();
      if (next.done === true) return true;
      this.#pending = next.value;
    }
    return false;
  }

  async readSome(maxBytes: number): Promise<Buffer> {
    if (await this.isAtEnd()) throw new S3Error('IncompleteBody');
    const bytes = this.#pending.subarray(0, maxBytes);
    this.#pending = this.#pending.subarray(bytes.length);
    return bytes;
  }

  async readLine(): Promise<string> {
    let line = '';
    while (line.length <= maxLineBytes) {
      if (await this.isAtEnd()) throw new S3Error('IncompleteBody');
      const newline = this.#pending.indexOf(0x0a);
      const end = newline === -1 ? this.#pending.length : newline;
      line += this.#pending.toString('latin1', 0, Math.min(end, maxLineBytes + 1));
      this.#pending = this.#pending.subarray(newline === -1 ? end : end + 1);
      if (newline !== -1 && line.length <= maxLineBytes)
        return line.endsWith('\r') ? line.slice(0, -1) : line;
    }
    throw new S3Error('InvalidChunkSizeError');
  }

  /** Releases the source, so that the remaining part of a rejected body can still be read elsewhere. */
  async release(): Promise<void> {
    await this.#source.return?.();
  }
}
