import type { JsonRecord } from '../../../shared/encoding/json-record.ts';
import type { SimulatedCall, SimulatedError } from '../dialect.ts';
import { readRecord, readRecords, readText } from '../json-record.ts';
import { joinUsage } from './gather-chunks.ts';
import { simulateError, type Personality } from './personality.ts';
import { hasImage, mapMessages, mapUsage, readLimit } from './read-chat.ts';

/**
 * DeepSeek's API of 2026. Sources: api-docs.deepseek.com (Create Chat Completion, Thinking Mode, JSON Output, Context
 * Caching), and the words of its errors as users report them (earendil-works/pi#1048, BenedictKing/ccx#149,
 * SakanaAI/AI-Scientist#177, pollinations/pollinations#1291, abhigyanpatwari/GitNexus#1563).
 */

const roles = new Set<unknown>(['system', 'user', 'assistant', 'tool', 'latest_reminder']);
const maxOutputTokens = 8_192;

export const deepseek: Personality = {
  operations: ['chat', 'models'],

  check: checkChat,

  writeChat: (response, { body }) =>
    mapUsage(mapMessages(writeHead(response), writeMessage), (usage) => writeUsage(usage, body)),

  // The last chunk with a choice has the usage, and each chunk before it a null.
  writeChunks: (chunks, { body }) =>
    joinUsage(chunks).map((chunk) =>
      mapUsage(mapMessages(writeHead(chunk), writeDelta), (usage) => writeUsage(usage, body)),
    ),

  writeError: ({ status, message, type, code }) => ({
    error: { message, type: nameType(status, type), param: null, code: code ?? 'invalid_request_error' },
  }),

  streamError: {
    id: 'chatcmpl-simulated',
    object: 'chat.completion.chunk',
    created: 1_700_000_000,
    model: 'deepseek-chat',
    choices: [{ index: 0, delta: { content: '' }, finish_reason: 'insufficient_system_resource' }],
  },
};

function checkChat({ operation, model, body }: SimulatedCall): SimulatedError | null {
  if (operation.name !== 'chat') return null;
  const messages = readRecords(body['messages']);
  const wrong = messages.findIndex(({ role }) => !roles.has(role));
  if (wrong !== -1) {
    const role = readText(messages[wrong]?.['role']);
    return chatError(
      `Failed to deserialize the JSON body into the target type: messages[${wrong}].role: unknown variant \`${role}\`, expected one of \`system\`, \`user\`, \`assistant\`, \`tool\`, \`latest_reminder\` at line 1 column 85`,
    );
  }
  if (hasImage(body)) {
    return chatError(
      'Failed to deserialize the JSON body into the target type: messages[0]: unknown variant `image_url`, expected `text` at line 1 column 132',
    );
  }
  if (Number(body['n'] ?? 1) !== 1) return chatError('Invalid n value (currently only n = 1 is supported)');
  const limit = readLimit(body);
  if (limit !== null && (limit < 1 || limit > maxOutputTokens)) {
    return chatError(`Invalid max_tokens value, the valid range of max_tokens is [1, ${maxOutputTokens}]`);
  }
  return checkFormat(body) ?? (model.includes('reasoner') ? checkThinking(messages) : null);
}

const chatError = (message: string): SimulatedError => simulateError(400, 'invalid_request_error', message);

function checkFormat(body: JsonRecord): SimulatedError | null {
  const { type = 'text' } = readRecord(body['response_format']);
  if (type === 'text') return null;
  if (type !== 'json_object') return chatError('This response_format type is unavailable now');
  if (/json/i.test(JSON.stringify(body['messages']))) return null;
  return chatError(
    "Prompt must contain the word 'json' in some form to use 'response_format' of type 'json_object'.",
  );
}

/** While it thinks, the calls of the current turn must come back with their reasoning. */
function checkThinking(messages: readonly JsonRecord[]): SimulatedError | null {
  const start = messages.findLastIndex(({ role }) => role === 'user');
  const lacksReasoning = messages
    .slice(start + 1)
    .some((message) => message['tool_calls'] !== undefined && readText(message['reasoning_content']) === '');
  if (!lacksReasoning) return null;
  return chatError('The `reasoning_content` in the thinking mode must be passed back to the API.');
}

function nameType(status: number, type: string): string {
  if (status === 401) return 'authentication_error';
  return status === 402 ? 'unknown_error' : type;
}

const writeHead = ({ service_tier: _tier, ...response }: JsonRecord): JsonRecord => ({
  ...response,
  system_fingerprint: 'fp_8802369eaa_prod0425fp8',
});

const writeMessage = ({ refusal: _refusal, ...message }: JsonRecord): JsonRecord => ({
  ...message,
  content: message['content'] ?? '',
});

/** Of text and reasoning, the one that a piece does not have is null. */
function writeDelta({ refusal: _refusal, ...delta }: JsonRecord): JsonRecord {
  return delta['reasoning_content'] === undefined ? delta : { content: null, ...delta };
}

function writeUsage(usage: JsonRecord, _body: JsonRecord): JsonRecord {
  const cached = Number(readRecord(usage['prompt_tokens_details'])['cached_tokens'] ?? 0);
  const { prompt_tokens, completion_tokens, total_tokens } = usage;
  const { reasoning_tokens } = readRecord(usage['completion_tokens_details']);
  return {
    prompt_tokens,
    completion_tokens,
    total_tokens,
    prompt_tokens_details: { cached_tokens: cached },
    ...(Number(reasoning_tokens) > 0 ? { completion_tokens_details: { reasoning_tokens } } : {}),
    prompt_cache_hit_tokens: cached,
    prompt_cache_miss_tokens: Number(prompt_tokens) - cached,
  };
}
