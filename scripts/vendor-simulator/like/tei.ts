import type { SimulatedCall, SimulatedError } from '../dialect.ts';
import { DEFAULT_DIMENSIONS } from '../vectors.ts';
import { simulateError, type Personality } from './personality.ts';
import { countOwnTokens, listInputs } from './read-chat.ts';

/**
 * Hugging Face's Text Embeddings Inference 1.8 with `--auto-truncate false`. Sources: router/src/http/server.rs
 * (`openai_embed`, statuses), router/src/http/types.rs (`OpenAICompatErrorResponse`), router/src/main.rs (limits),
 * core/src/tokenization.rs and core/src/infer.rs (messages).
 */

/** `--max-client-batch-size`. */
const maxBatchInputs = 32;
/** `--payload-limit`. */
const maxBodyBytes = 2_000_000;
/** The length of an encoder such as BGE. */
const maxTokens = 512;

export const tei: Personality = {
  operations: ['embeddings'],

  check: ({ body }) => checkBatch(body) ?? checkInputs(body),

  writeEmbeddings: (response) => ({ ...response, model: 'BAAI/bge-base-en-v1.5' }),

  // Its web framework rejects unknown paths and oversized bodies before TEI's own code runs.
  writeError: ({ status, message, type }) => {
    if (status === 404) return '';
    return status === 413 ? message : { message, code: status, type: names[type] ?? 'Backend' };
  },
};

const names: Readonly<Record<string, string>> = {
  Validation: 'Validation',
  Empty: 'Empty',
  requests: 'Overloaded',
};

function checkBatch(body: SimulatedCall['body']): SimulatedError | null {
  if (Buffer.byteLength(JSON.stringify(body)) > maxBodyBytes) {
    return simulateError(413, 'Validation', 'Failed to buffer the request body: length limit exceeded');
  }
  const count = Array.isArray(body['input']) ? body['input'].length : 1;
  if (count === 0) return simulateError(400, 'Empty', '`inputs` cannot be empty');
  if (count <= maxBatchInputs) return null;
  return simulateError(
    422,
    'Validation',
    `batch size ${count} > maximum allowed batch size ${maxBatchInputs}`,
  );
}

function checkInputs(body: SimulatedCall['body']): SimulatedError | null {
  const inputs = listInputs(body);
  if (inputs.includes(''))
    return simulateError(400, 'Empty', 'Input validation error: `inputs` cannot be empty');
  const long = inputs.map(countOwnTokens).find((tokens) => tokens > maxTokens);
  if (long !== undefined) {
    const message = `Input validation error: \`inputs\` must have less than ${maxTokens} tokens. Given: ${long}`;
    return simulateError(422, 'Validation', message);
  }
  if (Number(body['dimensions'] ?? 1) <= DEFAULT_DIMENSIONS) return null;
  const message =
    'Input validation error: `dimensions` should be smaller than the maximum embedding dimension.';
  return simulateError(422, 'Validation', message);
}
