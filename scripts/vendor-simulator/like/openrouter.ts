import type { JsonRecord } from '../../../shared/encoding/json-record.ts';
import type { SimulatedCall, SimulatedError } from '../dialect.ts';
import { readRecord, readRecords } from '../json-record.ts';
import { simulateError, type Personality } from './personality.ts';
import { countPrompt, hasImage, mapChoices, mapMessages, mapUsage, readLimit } from './read-chat.ts';

/**
 * OpenRouter's API of 2026. Sources: openrouter.ai/docs (API reference: overview, streaming, errors and debugging;
 * guides: reasoning tokens, usage accounting).
 */

const context = 8_192;
const provider = 'Simulated';
const comment = 'OPENROUTER PROCESSING';

export const openrouter: Personality = {
  operations: ['chat', 'embeddings', 'models'],

  check: (call) => (call.operation.name === 'chat' ? checkChat(call) : null),

  // Usage is always reported.
  readBody: (body) => ({ ...body, stream_options: { include_usage: true } }),

  writeChat: (response, { faults }) => {
    const written = mapUsage(
      mapChoices(mapMessages(writeHead(response), writeMessage), writeChoice),
      writeUsage,
    );
    // The fault of a stream that breaks off, in a whole response.
    if (faults.errorAfterChunks === undefined) return written;
    const error = { code: 502, message: 'Provider disconnected', metadata: { provider_name: provider } };
    return mapChoices(written, (choice) => ({ ...choice, finish_reason: 'error', error }));
  },

  writeChunks: (chunks) => [
    comment,
    comment,
    ...chunks.map((chunk) => {
      const { usage, ...written } = writeHead(chunk);
      const isUsage = readRecords(chunk['choices']).length === 0;
      // Usage comes with a choice that has ended before.
      const choices = [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }];
      return mapUsage(
        mapChoices(
          mapMessages({ ...written, ...(isUsage ? { choices, usage } : {}) }, (delta) =>
            writeMessage({ role: 'assistant', content: '', ...delta }),
          ),
          writeChoice,
        ),
        writeUsage,
      );
    }),
  ],

  writeError: ({ status, message }) => ({ error: { message, code: status }, user_id: 'user_simulated' }),

  streamError: {
    id: 'gen-simulated',
    object: 'chat.completion.chunk',
    created: 1_700_000_000,
    model: 'simulated',
    provider,
    error: { code: 502, message: 'Provider disconnected', metadata: { provider_name: provider } },
    choices: [{ index: 0, delta: { content: '' }, finish_reason: 'error', native_finish_reason: null }],
  },
};

function checkChat({ body }: SimulatedCall): SimulatedError | null {
  if (hasImage(body)) {
    return simulateError(404, 'not_found', 'No endpoints found that support image input');
  }
  const prompt = countPrompt(body);
  const limit = readLimit(body) ?? 0;
  if (prompt + limit <= context) return null;
  const message = `This endpoint's maximum context length is ${context} tokens. However, you requested about ${prompt + limit} tokens (${prompt} of text input, ${limit} in the output). Please reduce the length of either one, or use the "middle-out" transform to compress your prompt automatically.`;
  return simulateError(400, 'invalid_request', message);
}

const writeHead = ({ service_tier: _tier, ...response }: JsonRecord): JsonRecord => ({
  ...response,
  id: 'gen-simulated',
  provider,
});

function writeMessage({ reasoning_content: text, ...message }: JsonRecord): JsonRecord {
  if (text === undefined) return { ...message, reasoning: null };
  const details = [{ type: 'reasoning.text', text, format: 'unknown', index: 0 }];
  return { ...message, reasoning: text, reasoning_details: details };
}

/** The word of the vendor behind it. */
const nativeWords: Readonly<Record<string, string>> = {
  stop: 'end_turn',
  length: 'max_tokens',
  tool_calls: 'tool_use',
};

const writeChoice = (choice: JsonRecord): JsonRecord => ({
  ...choice,
  native_finish_reason: nativeWords[String(choice['finish_reason'])] ?? null,
});

function writeUsage(usage: JsonRecord): JsonRecord {
  return {
    ...usage,
    cost: 0.000_012,
    is_byok: false,
    cost_details: { upstream_inference_cost: null },
    completion_tokens_details: {
      ...readRecord(usage['completion_tokens_details']),
      image_tokens: 0,
    },
  };
}
