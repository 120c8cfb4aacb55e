import { chunkBuffer, type ChunkedBody } from './chunked-body.ts';

/** Puts text before and after a body, without copying the body. */
export function wrapBody(before: string, body: Buffer | ChunkedBody, after: string): ChunkedBody {
  const parts = [chunkBuffer(Buffer.from(before)), toChunks(body), chunkBuffer(Buffer.from(after))];
  const lengths = parts.map(({ byteLength }) => byteLength);
  const byteLength = lengths.includes(undefined)
    ? undefined
    : lengths.reduce<number>((sum, length) => sum + (length ?? 0), 0);
  let index = 0;
  return {
    maxChunkBytes: Math.max(...parts.map(({ maxChunkBytes }) => maxChunkBytes)),
    ...(byteLength === undefined ? {} : { byteLength }),
    write(target) {
      for (; index < parts.length; index++) {
        const length = parts[index]!.write(target);
        if (length > 0) return length;
      }
      return 0;
    },
  };
}

const toChunks = (body: Buffer | ChunkedBody): ChunkedBody =>
  Buffer.isBuffer(body) ? chunkBuffer(body) : body;
