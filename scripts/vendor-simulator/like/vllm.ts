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
  mapChoices,
  mapMessages,
  mapUsage,
  readLimit,
  withOwnPrompt,
} from './read-chat.ts';

/**
 * vLLM 0.13 and later. Sources: vllm/entrypoints/openai/engine/protocol.py (fields, errors, usage),
 * chat_completion/protocol.py (`check_tool_usage`), chat_completion/serving.py (chunks), entrypoints/chat_utils.py
 * (arguments of calls, images), renderers/params.py (too long prompts). A model has shorter vectors if its name contains
 * `matryoshka`.
 */

const vllmContext = 8_192;
/** The length of an encoder such as BGE. */
const vllmEmbeddingLength = 512;
/** The tokenizer's longest token. A text with more characters than all tokens may have is not tokenized at all. */
const charactersPerToken = 128;

/** Qwen's template knows these. */
const roles = new Set<unknown>(['system', 'user', 'assistant', 'tool']);

export const vllm: Personality = {
  operations: ['chat', 'embeddings', 'models'],

  check: (call) => (call.operation.name === 'chat' ? checkChat(call) : checkInputs(call)),

  writeChat: (response, { body }) =>
    mapUsage(
      {
        ...mapChoices(mapMessages(response, writeMessage), writeChoice),
        prompt_logprobs: null,
        kv_transfer_params: null,
      },
      (usage) => writeUsage(usage, body),
    ),

  writeChunks: (chunks, { body }) =>
    chunks
      .map(({ id, object, created, model, choices, usage }) =>
        mapUsage(
          {
            ...mapMessages({ id, object, created, model, choices }, ({ refusal: _refusal, ...delta }) =>
              writeReasoning(writeCalls(delta)),
            ),
            ...(usage === null || usage === undefined ? {} : { usage }),
          },
          (known) => writeUsage(known, body),
        ),
      )
      .map((chunk) =>
        mapChoices(chunk, (choice) => (choice['finish_reason'] === null ? choice : writeChoice(choice))),
      ),

  writeError: ({ status, message, type, param = null }) => ({
    error: { message, type: nameType(status, type), param, code: status },
  }),
};

function checkChat({ model, body }: SimulatedCall): SimulatedError | null {
  const { tools, tool_choice: choice } = body;
  if (Array.isArray(tools) && tools.length === 0) {
    return bodyError(
      '`tools` must not be an empty array. Either provide at least one tool or omit the field entirely.',
    );
  }
  if ((choice ?? 'none') !== 'none' && (tools ?? null) === null) {
    return bodyError('When using `tool_choice`, `tools` must be set.');
  }
  if (body['stream'] !== true && (body['stream_options'] ?? null) !== null) {
    return bodyError('Stream options can only be defined when `stream=True`.');
  }
  if (hasImage(body)) return requestError(`${model} is not a multimodal model`);
  if (listArguments(body).some((args) => args !== '' && args !== undefined && !isJson(args))) {
    return requestError('Expecting value: line 1 column 1 (char 0)');
  }
  if (readRecords(body['messages']).some(({ role }) => !roles.has(role))) {
    return requestError('Unexpected message role.');
  }
  return checkLength(body);
}

/** Stops counting the prompt once it is too long, so that it names a lower bound. */
function checkLength(body: JsonRecord): SimulatedError | null {
  const limit = readLimit(body);
  if (limit !== null && limit < 1) {
    return requestError(
      `max_tokens must be at least 1, got ${limit}. (parameter=max_tokens, value=${limit})`,
    );
  }
  const room = vllmContext - (limit ?? 1);
  const characters = JSON.stringify(body['messages']).length;
  const begin = `This model's maximum context length is ${vllmContext} tokens. However, you requested ${limit ?? 0} output tokens and your prompt contains`;
  const end = 'Please reduce the length of the input prompt or the number of requested output tokens.';
  if (characters > Math.max(0, room) * charactersPerToken) {
    return requestError(
      `${begin} ${characters} characters (more than ${Math.max(0, room) * charactersPerToken} characters, which is the upper bound for ${Math.max(0, room)} input tokens). ${end} (parameter=input_text, value=${characters})`,
      'input_text',
    );
  }
  if (countPrompt(body) <= room) return null;
  return requestError(
    `${begin} at least ${room + 1} input tokens, for a total of at least ${vllmContext + 1} tokens. ${end} (parameter=input_tokens, value=${room + 1})`,
    'input_tokens',
  );
}

function checkInputs({ model, body }: SimulatedCall): SimulatedError | null {
  if ((body['dimensions'] ?? null) !== null && !model.includes('matryoshka')) {
    return requestError(
      `Model "${model}" does not support matryoshka representation, changing output dimensions will lead to poor results.`,
    );
  }
  const isTooLong = listInputs(body).some((text) => countOwnTokens(text) > vllmEmbeddingLength);
  if (!isTooLong) return null;
  const least = vllmEmbeddingLength + 1;
  return requestError(
    `This model's maximum context length is ${vllmEmbeddingLength} tokens. However, you requested 0 output tokens and your prompt contains at least ${least} input tokens, for a total of at least ${least} tokens. Please reduce the length of the input prompt or the number of requested output tokens. (parameter=input_tokens, value=${least})`,
    'input_tokens',
  );
}

const requestError = (message: string, param: string | null = null): SimulatedError => ({
  ...simulateError(400, 'BadRequestError', message),
  param,
});

/** What pydantic finds wrong with a body. */
const bodyError = (message: string): SimulatedError =>
  requestError(`[{'type': 'value_error', 'loc': ('body',), 'msg': 'Value error, ${message}'}]`);

function nameType(status: number, type: string): string {
  if (type === 'BadRequestError') return type;
  if (status === 404) return 'NotFoundError';
  return status < 500 ? 'BadRequestError' : 'InternalServerError';
}

function writeMessage({ annotations = null, ...message }: JsonRecord): JsonRecord {
  return writeReasoning({
    reasoning_content: null,
    ...writeCalls(message),
    tool_calls: readRecords(writeCalls(message)['tool_calls']),
    annotations,
    audio: null,
    function_call: null,
  });
}

/** `reasoning` is the name since 0.12. The older one is still sent. */
function writeReasoning(message: JsonRecord): JsonRecord {
  const { reasoning_content: reasoning } = message;
  return reasoning === undefined ? message : { ...message, reasoning };
}

function writeCalls(message: JsonRecord): JsonRecord {
  if (message['tool_calls'] === undefined) return message;
  const rename = (call: JsonRecord): JsonRecord =>
    typeof call['id'] === 'string' ? { ...call, id: `chatcmpl-tool-${call['id']}` } : call;
  return { ...message, tool_calls: readRecords(message['tool_calls']).map(rename) };
}

const writeChoice = (choice: JsonRecord): JsonRecord => ({ ...choice, stop_reason: null, token_ids: null });

function writeUsage(usage: JsonRecord, body: JsonRecord): JsonRecord {
  const { prompt_tokens, total_tokens, completion_tokens } = withOwnPrompt(usage, countPrompt(body));
  return { prompt_tokens, total_tokens, completion_tokens, prompt_tokens_details: null };
}
