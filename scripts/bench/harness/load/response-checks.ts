import type { ParsedResponse } from './response-reader.ts';

/** What every response in a run must look like. */
export type ResponseExpectation =
  | { readonly kind: 'chat'; readonly tokens: number }
  | { readonly kind: 'stream'; readonly tokens: number }
  | {
      readonly kind: 'embeddings';
      readonly inputs: number;
      readonly dimensions: number;
      readonly format: 'base64' | 'float';
    }
  /** A durable job that was accepted. */
  | { readonly kind: 'job' };

type BodyExpectation = Extract<ResponseExpectation, { kind: 'chat' | 'embeddings' }>;

const bytesPerFloat = 4;

/** Returns what is wrong with a response, or null. Checks bodies only if the reader kept them. */
export function findFault(response: ParsedResponse, expects: ResponseExpectation): string | null {
  const status = expects.kind === 'job' ? 202 : 200;
  if (response.status !== status)
    return `HTTP ${response.status}: ${response.body?.slice(0, 160) ?? 'no body'}`;
  if (expects.kind === 'job') return readJobId(response) === null ? 'a job without an id' : null;
  if (expects.kind === 'stream') {
    if (!response.isDone) return 'a stream without [DONE]';
    return response.tokens === expects.tokens ? null : `a stream of ${response.tokens} tokens`;
  }
  if (response.body !== null) return findBodyFault(JSON.parse(response.body), expects);
  return response.bodyBytes < minBytes(expects) ? `a response of only ${response.bodyBytes} bytes` : null;
}

/** The reader keeps the body, because the status is not 200. */
export const readJobId = ({ body }: ParsedResponse): string | null =>
  /"id":"([0-9a-f-]{36})"/.exec(body ?? '')?.[1] ?? null;

function minBytes(expects: BodyExpectation): number {
  return expects.kind === 'chat' ? expects.tokens : expects.inputs * expects.dimensions * bytesPerFloat;
}

function findBodyFault(body: unknown, expects: BodyExpectation): string | null {
  if (expects.kind === 'chat') {
    const { choices, usage } = body as {
      choices: { message: { content: string } }[];
      usage: { completion_tokens: number };
    };
    if (!choices[0]?.message.content) return 'a chat without text';
    return usage.completion_tokens === expects.tokens ? null : `a chat of ${usage.completion_tokens} tokens`;
  }
  const { data } = body as { data: { embedding: string | number[] }[] };
  if (data.length !== expects.inputs) return `${data.length} vectors for ${expects.inputs} inputs`;
  const isRight = ({ embedding }: { embedding: string | number[] }): boolean =>
    expects.format === 'base64'
      ? typeof embedding === 'string' &&
        Buffer.byteLength(embedding, 'base64') === expects.dimensions * bytesPerFloat
      : Array.isArray(embedding) && embedding.length === expects.dimensions;
  return data.every(isRight) ? null : 'a vector in another format or of another length';
}
