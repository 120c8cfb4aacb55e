import type { Answer } from './answer-reader.ts';

/** What every response of a run must look like. */
export type AnswerExpectation =
  | { readonly kind: 'chat'; readonly tokens: number }
  | { readonly kind: 'stream'; readonly tokens: number }
  | {
      readonly kind: 'embeddings';
      readonly inputs: number;
      readonly dimensions: number;
      readonly format: 'base64' | 'float';
    };

const bytesPerFloat = 4;

/** Returns what is wrong with a response, or null. Checks bodies only if they were kept. */
export function findFault(answer: Answer, expects: AnswerExpectation): string | null {
  if (answer.status !== 200) return `HTTP ${answer.status}: ${answer.body?.slice(0, 160) ?? 'no body'}`;
  if (expects.kind === 'stream') {
    if (!answer.isDone) return 'a stream without [DONE]';
    return answer.tokens === expects.tokens ? null : `a stream of ${answer.tokens} tokens`;
  }
  if (answer.body !== null) return findFaultWithin(JSON.parse(answer.body), expects);
  return answer.bodyBytes < leastBytes(expects) ? `an answer of only ${answer.bodyBytes} bytes` : null;
}

function leastBytes(expects: Exclude<AnswerExpectation, { kind: 'stream' }>): number {
  return expects.kind === 'chat' ? expects.tokens : expects.inputs * expects.dimensions * bytesPerFloat;
}

function findFaultWithin(
  body: unknown,
  expects: Exclude<AnswerExpectation, { kind: 'stream' }>,
): string | null {
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
  return data.every(isRight) ? null : 'a vector of another form or length';
}
