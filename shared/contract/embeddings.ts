import Type, { type Static } from 'typebox';
import { Nullable, StringEnum } from './fields.ts';
import { creationErrors, defineOperation } from './operation.ts';

export const maxEmbeddingInputs = 2048;
export const maxTokensPerEmbeddingInput = 8192;

export const EmbeddingRequest = Type.Object({
  model: Type.String({ minLength: 1 }),
  input: Type.Unsafe<string | string[]>({
    anyOf: [
      { type: 'string', minLength: 1 },
      { type: 'array', items: { type: 'string', minLength: 1 }, minItems: 1, maxItems: maxEmbeddingInputs },
    ],
    description: 'A text, or up to 2048 of them, each of at most 8192 tokens.',
  }),
  dimensions: Type.Optional(Nullable(Type.Integer({ minimum: 1, maximum: 65_536 }))),
  encoding_format: Type.Optional(Nullable(StringEnum(['float', 'base64'], { default: 'float' }))),
  user: Type.Optional(Nullable(Type.String({ maxLength: 512 }))),
});
export type EmbeddingRequest = Static<typeof EmbeddingRequest>;

export const EmbeddingUsage = Type.Object({
  prompt_tokens: Type.Integer(),
  total_tokens: Type.Integer(),
  total_time: Nullable(Type.Number({ description: 'Seconds.' })),
  cost_request: Nullable(Type.Number({ description: 'Roubles.' })),
  free_request: Nullable(Type.Boolean()),
});
export type EmbeddingUsage = Static<typeof EmbeddingUsage>;

export const EmbeddingResponse = Type.Object({
  id: Type.String(),
  created: Type.Integer(),
  object: Type.Literal('list'),
  data: Type.Array(
    Type.Object({
      object: Type.Literal('embedding'),
      embedding: Type.Unsafe<number[] | string>({
        anyOf: [{ type: 'array', items: { type: 'number' } }, { type: 'string' }],
        description: 'Numbers, or base64 of little-endian float32.',
      }),
      index: Type.Integer(),
    }),
  ),
  model: Type.String(),
  usage: EmbeddingUsage,
});

export const createEmbedding = defineOperation({
  operationId: 'createEmbedding',
  tag: 'Embeddings',
  summary: 'Turn texts into vectors',
  method: 'post',
  path: '/embeddings',
  auth: 'key',
  bodyLimitBytes: 80_000_000,
  body: EmbeddingRequest,
  response: EmbeddingResponse,
  errors: creationErrors,
});
