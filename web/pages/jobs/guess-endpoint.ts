import type { BatchEndpoint } from './shared/work.ts';

const readBytes = 64 * 1024;

/**
 * Returns the endpoint that the first line of a file is for, by the fields of its body. Null if the lines say it
 * themselves, or if it cannot be told.
 */
export async function guessEndpoint(file: Blob): Promise<BatchEndpoint | null> {
  const [first = ''] = (await file.slice(0, readBytes).text()).trimStart().split('\n', 1);
  const line = parse(first);
  const { url, body } = line;
  if (typeof url === 'string' || typeof body !== 'object' || body === null) return null;
  if ('messages' in body) return '/v1/chat/completions';
  if ('input' in body) return '/v1/embeddings';
  if ('image' in body || 'images' in body) return '/v1/images/edits';
  return 'prompt' in body ? '/v1/images/generations' : null;
}

function parse(text: string): { readonly url?: unknown; readonly body?: unknown } {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : {};
  } catch {
    // The server says what is wrong with the line.
    return {};
  }
}
