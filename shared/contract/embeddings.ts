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

export const maxEmbeddingInputs = 2048;
export const maxTokensPerEmbeddingInput = 8192;

/**
 * How token numbers in a request are interpreted: the encoding of OpenAI's embedding models, which its clients use
 * for any model.
 */
export const tokenEncoding = 'cl100k_base';
/** The last token number that stands for text. Special tokens come after it. */
export const maxTokenId = 100_255;

const TokenNumber = {
  type: 'integer',
  description: `The number of a token of \`${tokenEncoding}\`, from 0 to ${maxTokenId}.`,
  [wrongTypeHint]: 'an array of token numbers holds nothing else',
};

/**
 * Token numbers of several texts are not checked yet. There may be millions, so they are checked while they are
 * decoded.
 */
export type EmbeddingInput = string | readonly string[] | readonly number[] | readonly (readonly unknown[])[];

const EmbeddingInput = {
  anyOf: [
    { type: 'string', minLength: 1 },
    {
      type: 'array',
      items: { type: 'string', minLength: 1, [wrongTypeHint]: 'an array of texts holds nothing else' },
      minItems: 1,
      maxItems: maxEmbeddingInputs,
    },
    { type: 'array', items: TokenNumber, minItems: 1, examples: [[9906, 1917]] },
    {
      type: 'array',
      items: {
        type: 'array',
        [lateItems]: TokenNumber,
        minItems: 1,
        [wrongTypeHint]: 'an array of arrays of token numbers holds nothing else',
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
        'A text, or up to 2048 of them, each of at most 8192 tokens or the model’s `context`, if that is less. ' +
        'A longer one is refused, not cut. A text may also be sent as an array of token numbers of ' +
        `\`${tokenEncoding}\`, whichever the model: \`[9906, 1917]\` is \`Hello world\`.`,
    }),
    dimensions: Type.Optional(
      Nullable(
        Type.Integer({
          minimum: 1,
          maximum: 65_536,
          description:
            'The length of the vectors, for models that can shorten them; others take only their own. null is the ' +
            'model’s own length.',
        }),
      ),
    ),
    encoding_format: Type.Optional(
      Nullable(
        StringEnum(['float', 'base64'], {
          default: 'float',
          description: '`base64` is less than half of the size: float32, little-endian.',
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
    total_tokens: Type.Integer({ description: 'The same: vectors have no tokens.' }),
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
      description: 'Numbers, with as many digits as a float32 has, or base64 of little-endian float32.',
    }),
    index: Type.Integer({ description: 'The place of its text in `input`, from 0.' }),
  },
  { title: 'Embedding' },
);

export const EmbeddingResponse = Type.Object(
  {
    id: RequestId,
    created: CreatedSeconds,
    object: Type.Literal('list'),
    data: Type.Array(Embedding, { description: 'One for each text, in the order of `input`.' }),
    model: Type.String(),
    usage: EmbeddingUsage,
  },
  { title: 'EmbeddingResponse' },
);

export const createEmbedding = defineOperation({
  operationId: 'createEmbedding',
  tag: 'Embeddings',
  summary: 'Turn texts into vectors',
  description:
    'Texts of similar meaning get vectors that point in similar directions. Many texts in one request cost the same ' +
    'as one by one, and are quicker. If you close the connection, inputs that still wait are dropped and free; those that ' +
    'the model was asked for are charged. With an `Idempotency-Key` all are computed and kept.',
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
