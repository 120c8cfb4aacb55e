import type { IncomingMessage } from 'node:http';

/** The path stays as it was sent: model names in it are for the dialect to decode. */
export function splitUrl(url: string): { readonly path: string; readonly query: URLSearchParams } {
  const [path = '/', query = ''] = url.split('?', 2);
  return { path, query: new URLSearchParams(query) };
}

export async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) {
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** Null where it is not a JSON object; a request without a body counts as an empty one. */
export function parseBody(text: string): Readonly<Record<string, unknown>> | null {
  if (text === '') {
    return {};
  }
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === 'object' && body !== null && !Array.isArray(body) ? { ...body } : null;
  } catch {
    return null;
  }
}
