import type { ExecutionContext } from 'ava';
import { deriveVector } from '../../scripts/vendor-simulator/vectors.ts';
import type { TestAccount, TestStack } from './stack.ts';

/** Embedding responses with so many vectors that they are sent in pieces. */

export interface LargeResponse {
  readonly status: number;
  readonly body: {
    readonly data: readonly { readonly index: number; readonly embedding: string }[];
    readonly usage: { readonly prompt_tokens: number; readonly cost_request: number };
  };
}

export const writeTexts = (name: string, count: number): string[] =>
  Array.from({ length: count }, (_, i) => `${name} ${i}`);

export async function requestEmbeddings(
  stack: TestStack,
  { apiKey }: TestAccount,
  model: string,
  input: readonly string[],
): Promise<LargeResponse> {
  const response = await stack.post('/v1/embeddings', apiKey, { model, input, encoding_format: 'base64' });
  return { status: response.status, body: (await response.json()) as LargeResponse['body'] };
}

/** Asserts that each text has the simulated vendor's exact vector. */
export function checkVectors(
  t: ExecutionContext,
  { status, body }: LargeResponse,
  texts: readonly string[],
): void {
  t.is(status, 200, JSON.stringify(body).slice(0, 300));
  t.is(body.data.length, texts.length);
  const wrong = body.data.filter(({ index, embedding }, i) => {
    const bytes = Buffer.from(embedding, 'base64');
    const expected = deriveVector(texts[i]!, bytes.length / 4);
    return index !== i || bytes.length === 0 || !bytes.equals(Buffer.from(expected.buffer));
  });
  t.deepEqual(
    wrong.map(({ index }) => index),
    [],
  );
}
