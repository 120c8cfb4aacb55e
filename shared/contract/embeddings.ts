import Type, { type Static } from 'typebox';
import { embeddingExample } from './embedding-example.ts';
import {
  CostRequest,
  CreatedSeconds,
  EndUser,
  FreeRequest,
  lateItems,
  Nullable,
  RequestId,
  StringEnum,
  TotalTime,
  wrongTypeHint,
} from './fields.ts';
import { creationErrors, defineOperation } from './operation.ts';

const maxEmbeddingInputs = 2048;
export const maxTokensPerEmbeddingInput = 8192;

/**
 * The encoding of token IDs in a request. It is that of OpenAI's embedding models, which OpenAI's clients use for any
 * model.
 */
export const tokenEncoding = 'cl100k_base';
/** The last token ID that stands for text. Special tokens come after it. */
export const maxTokenId = 100_255;

const TokenId = {
  type: 'integer',
  description: `A token ID of the \`${tokenEncoding}\` encoding, from 0 to ${maxTokenId}.`,
  [wrongTypeHint]: 'do not mix token IDs with other values in one array',
};

/**
 * The inner arrays of several texts are not checked yet. They may hold millions of token IDs, so they are checked before
 * they are decoded, in work turns.
 */
export type EmbeddingInput = string | readonly string[] | readonly number[] | readonly (readonly unknown[])[];

const EmbeddingInput = {
  anyOf: [
    { type: 'string', minLength: 1 },
    {
      type: 'array',
      items: {
        type: 'string',
        minLength: 1,
        [wrongTypeHint]: 'do not mix texts with other values in one array',
      },
      minItems: 1,
      maxItems: maxEmbeddingInputs,
    },
    { type: 'array', items: TokenId, minItems: 1, examples: [[9906, 1917]] },
    {
      type: 'array',
      items: {
        type: 'array',
        [lateItems]: TokenId,
        minItems: 1,
        [wrongTypeHint]: 'do not mix arrays of token IDs with other values in one array',
      },
      minItems: 1,
      maxItems: maxEmbeddingInputs,
      examples: [
        [
          [9906, 1917],
          [14599, 2383],
        ],
      ],
    },
  ],
};

export const EmbeddingRequest = Type.Object(
  {
    model: Type.String({ minLength: 1, description: 'The id of an `embedding` model.' }),
    input: Type.Unsafe<EmbeddingInput>({
      ...EmbeddingInput,
      description:
        'A text, or an array of up to 2048 texts. Each may have at most 8192 tokens, or the model’s `context` if that ' +
        'is less. A longer text is rejected, not truncated. A text can also be sent as an array of token IDs of the ' +
        `\`${tokenEncoding}\` encoding, for any model: \`[9906, 1917]\` is \`Hello world\`.`,
    }),
    dimensions: Type.Optional(
      Nullable(
        Type.Integer({
          minimum: 1,
          maximum: 65_536,
          description:
            'The length of the vectors, for models that can shorten them. Other models accept only their own length. ' +
            'If null, the model’s own length is used.',
        }),
      ),
    ),
    encoding_format: Type.Optional(
      Nullable(
        StringEnum(['float', 'base64'], {
          default: 'float',
          description: '`base64` encodes little-endian float32 and is less than half the size.',
        }),
      ),
    ),
    user: EndUser,
  },
  { title: 'EmbeddingRequest' },
);
export type EmbeddingRequest = Static<typeof EmbeddingRequest>;

export const EmbeddingUsage = Type.Object(
  {
    prompt_tokens: Type.Integer({ description: 'Tokens of all inputs.' }),
    total_tokens: Type.Integer({ description: 'The same as `prompt_tokens`: vectors have no tokens.' }),
    total_time: Nullable(TotalTime),
    cost_request: Nullable(CostRequest),
    free_request: FreeRequest,
  },
  { title: 'EmbeddingUsage' },
);
export type EmbeddingUsage = Static<typeof EmbeddingUsage>;

export const Embedding = Type.Object(
  {
    object: Type.Literal('embedding'),
    embedding: Type.Unsafe<number[] | string>({
      anyOf: [{ type: 'array', items: { type: 'number' } }, { type: 'string' }],
      description: 'An array of numbers with float32 precision, or base64 of little-endian float32.',
    }),
    index: Type.Integer({ description: 'The index of the text in `input`, starting at 0.' }),
  },
  { title: 'Embedding' },
);

export const EmbeddingResponse = Type.Object(
  {
    id: RequestId,
    created: CreatedSeconds,
    object: Type.Literal('list'),
    data: Type.Array(Embedding, { description: 'One embedding per text, in the order of `input`.' }),
    model: Type.String(),
    usage: EmbeddingUsage,
  },
  { title: 'EmbeddingResponse' },
);

export const createEmbedding = defineOperation({
  operationId: 'createEmbedding',
  tag: 'Embeddings',
  summary: 'Create embeddings',
  description:
    'Converts texts to vectors. Texts with similar meanings get vectors that point in similar directions. Sending many ' +
    'texts in one request costs the same as sending them one by one, and is faster. If you close the connection, inputs ' +
    'that are still queued are dropped and not charged; inputs already sent to the model are charged. With an ' +
    '`Idempotency-Key`, all inputs are computed and the response is stored.',
  method: 'post',
  path: '/embeddings',
  auth: 'key',
  modelTypes: ['embedding'],
  bodyLimitBytes: 80_000_000,
  bodyIntegers: maxEmbeddingInputs * maxTokensPerEmbeddingInput,
  body: EmbeddingRequest,
  response: EmbeddingResponse,
  errors: creationErrors,
  example: embeddingExample,
});
