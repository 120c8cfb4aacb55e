import { ChunkList } from '../../shared/platform/runtime/chunk-list.ts';

export type BoundedBody = { readonly bytes: Buffer } | { readonly problem: string; readonly cause?: unknown };

/**
 * Reads a response's whole body, or returns why it cannot be read. Compressed bodies are rejected: a few kilobytes can
 * expand to any size, and the request's `accept-encoding` excludes them.
 */
export async function readBoundedBody(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  body: AsyncIterable<Buffer>,
  maxBytes: number,
): Promise<BoundedBody> {
  const encoding = String(headers['content-encoding'] ?? '').toLowerCase();
  if (encoding !== '' && encoding !== 'identity') return { problem: 'its response is compressed' };
  const tooLong = { problem: `it is larger than ${Math.floor(maxBytes / 1e6)} MB` };
  if (Number(headers['content-length']) > maxBytes) return tooLong;
  // An untrusted server may send megabytes in one-byte chunks.
  const chunks = new ChunkList();
  try {
    for await (const chunk of body) {
      chunks.add(chunk);
      if (chunks.length > maxBytes) return tooLong;
    }
  } catch (cause) {
    return { problem: 'its response was cut off', cause };
  }
  return { bytes: chunks.take() };
}
