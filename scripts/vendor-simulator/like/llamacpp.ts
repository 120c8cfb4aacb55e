import type { JsonRecord } from '../../../shared/encoding/json-record.ts';
import type { SimulatedCall, SimulatedError } from '../dialect.ts';
import { readRecords } from '../json-record.ts';
import { simulateError, type Personality } from './personality.ts';
import {
  countOwnTokens,
  countPrompt,
  hasImage,
  isJson,
  listArguments,
  listInputs,
  mapMessages,
  mapUsage,
  withOwnPrompt,
} from './read-chat.ts';

/**
 * llama.cpp's llama-server of 2026, started with `-c 8192`. Sources: tools/server/server-common.cpp
 * (`format_error_response`, `oaicompat_chat_params_parse`), server-task.cpp (`to_json_oaicompat_chat`, timings),
 * server-context.cpp (lengths), common/chat.cpp (arguments of calls).
 */

const context = 8_192;
/** `--ubatch-size`: an input must fit into one physical batch. */
const batchTokens = 512;
/** `-np`: how many choices a call may have. */
const slots = 4;

export const llamacpp: Personality = {
  operations: ['chat', 'embeddings', 'models'],

  check: (call) => (call.operation.name === 'chat' ? checkChat(call) : checkInputs(call)),

  // It has no shorter vectors.
  readBody: ({ dimensions: _dimensions, ...body }) => body,

  writeChat: (response, { body }) => ({
    ...mapUsage(mapMessages(writeHead(response), writeMessage), (usage) => writeUsage(usage, body)),
    timings,
  }),

  writeChunks: (chunks, { body }) =>
    chunks.map((chunk, index) => ({
      ...mapUsage(mapMessages(writeHead(chunk), writeMessage), (usage) => writeUsage(usage, body)),
      ...(index === chunks.length - 1 ? { timings } : {}),
    })),

  writeError: ({ status, message, type, details = [] }) => ({
    error: { code: status, message, type: nameType(status, type), ...details[0] },
  }),
};

const timings = {
  cache_n: 0,
  prompt_n: 12,
  prompt_ms: 31.4,
  prompt_per_token_ms: 2.6,
  prompt_per_second: 382.1,
  predicted_n: 5,
  predicted_ms: 101.2,
  predicted_per_token_ms: 20.2,
  predicted_per_second: 49.4,
};

function checkChat({ body }: SimulatedCall): SimulatedError | null {
  if (hasImage(body)) {
    const message =
      'image input is not supported - hint: if this is unexpected, you may need to provide the mmproj';
    return simulateError(500, 'server_error', message);
  }
  if (listArguments(body).some((args) => !isJson(args))) {
    const message =
      'Failed to parse tool call arguments as JSON: [json.exception.parse_error.101] parse error at line 1, column 1: attempting to parse an empty input; check that your input string or stream contains the expected JSON';
    return simulateError(500, 'server_error', message);
  }
  if (Number(body['n'] ?? 1) > slots) {
    const message = 'n_cmpl cannot be greater than the number of slots, please increase -np';
    return simulateError(400, 'invalid_request_error', message);
  }
  const prompt = countPrompt(body);
  if (prompt < context) return null;
  const message = `request (${prompt} tokens) exceeds the available context size (${context} tokens), try increasing it`;
  const details = [{ n_prompt_tokens: prompt, n_ctx: context }];
  return { ...simulateError(400, 'exceed_context_size_error', message), details };
}

/** One input that is too long fails the whole call. */
function checkInputs({ body }: SimulatedCall): SimulatedError | null {
  const long = listInputs(body)
    .map(countOwnTokens)
    .find((tokens) => tokens > batchTokens);
  if (long === undefined) return null;
  const message = `input (${long} tokens) is too large to process. increase the physical batch size (current batch size: ${batchTokens})`;
  return simulateError(500, 'server_error', message);
}

const namesOfStatus: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  501: 'not_supported_error',
  503: 'unavailable_error',
};

const nameType = (status: number, type: string): string =>
  type === 'exceed_context_size_error' ? type : (namesOfStatus[status] ?? 'server_error');

function writeHead({ service_tier: _tier, usage = null, ...response }: JsonRecord): JsonRecord {
  return { ...response, system_fingerprint: 'b7360-c4abcd2', ...(usage === null ? {} : { usage }) };
}

function writeMessage({ refusal: _refusal, annotations: _annotations, ...message }: JsonRecord): JsonRecord {
  if (message['tool_calls'] === undefined) return message;
  const rename = (call: JsonRecord): JsonRecord =>
    typeof call['id'] === 'string' ? { ...call, id: call['id'].padStart(32, 'x') } : call;
  return { ...message, tool_calls: readRecords(message['tool_calls']).map(rename) };
}

/** Counts the completion of the first choice only. */
function writeUsage(usage: JsonRecord, body: JsonRecord): JsonRecord {
  const completion_tokens = Number(usage['completion_tokens']) / Number(body['n'] ?? 1);
  const { prompt_tokens, total_tokens } = withOwnPrompt({ completion_tokens }, countPrompt(body));
  return { completion_tokens, prompt_tokens, total_tokens, prompt_tokens_details: { cached_tokens: 0 } };
}
