import type { JsonRecord } from '../../../shared/encoding/json-record.ts';
import type { SimulatedCall, SimulatedError } from '../dialect.ts';
import { readRecord, readRecords, readText } from '../json-record.ts';
import { gatherCalls } from './gather-chunks.ts';
import { simulateError, type Personality } from './personality.ts';
import {
  countPrompt,
  hasImage,
  isJson,
  keepFields,
  listArguments,
  mapMessages,
  mapUsage,
  withOwnPrompt,
} from './read-chat.ts';

/**
 * Ollama 0.11 and later. Sources: openai/openai.go (`ChatCompletionRequest`, `FromChatRequest`, `ToChatCompletion`,
 * `ToStreamChunks`, `FinishChunk`, `NewError`), middleware/openai.go, server/routes.go (`ChatHandler`),
 * runner/ollamarunner/runner.go (images).
 */

/** It ignores every other field: also `n`, `tool_choice` and `max_completion_tokens`. */
const chatFields = new Set(
  `model messages stream stream_options max_tokens seed stop temperature frequency_penalty presence_penalty top_p
  response_format tools reasoning reasoning_effort logprobs top_logprobs`.split(/\s+/),
);
const embeddingFields = new Set(['model', 'input', 'dimensions', 'encoding_format']);

const efforts = new Set<unknown>('none minimal low medium high xhigh ultra max'.split(' '));

export const ollama: Personality = {
  operations: ['chat', 'embeddings', 'models'],

  check: (call) => (call.operation.name === 'chat' ? checkChat(call) : checkEmbeddings(call)),

  readBody: (body, { operation }) =>
    keepFields(body, operation.name === 'chat' ? chatFields : embeddingFields),

  writeChat: (response, { body }) =>
    mapUsage(
      mapMessages(
        {
          ...keepFields(response, chunkFields),
          id,
          system_fingerprint: fingerprint,
          usage: response['usage'],
        },
        (message) => writeMessage({ ...message, content: message['content'] ?? '' }),
      ),
      (usage) => writeUsage(usage, body),
    ),

  writeChunks: (chunks, { body }) => {
    const written: JsonRecord[] = [];
    for (const chunk of gatherCalls(chunks)) {
      const [choice] = readRecords(chunk['choices']);
      const delta = readRecord(choice?.['delta']);
      const head = { ...keepFields(chunk, chunkFields), id, system_fingerprint: fingerprint };
      if (choice === undefined) {
        written.push(mapUsage({ ...head, usage: chunk['usage'] }, (usage) => writeUsage(usage, body)));
      } else if (choice['finish_reason'] !== null) {
        written.push({ ...head, choices: [{ ...choice, delta: {} }] });
      } else if (!isOpening(delta)) {
        // A wholly empty response has no role at all.
        const role = written.length === 0 ? { role: 'assistant' } : {};
        const output = writeMessage({ ...role, content: '', ...delta });
        written.push({ ...head, choices: [{ index: 0, delta: output, finish_reason: null }] });
      }
    }
    return written;
  },

  writeError: ({ status, message }) => ({
    error: { message, type: nameType(status), param: null, code: null },
  }),
};

const id = 'chatcmpl-417';
const fingerprint = 'fp_ollama';
const chunkFields = new Set(['object', 'created', 'model', 'choices']);

/** The first delta of OpenAI has only a role. Here the role is in the first delta with output. */
const isOpening = (delta: JsonRecord): boolean =>
  delta['role'] !== undefined && readText(delta['content']) === '';

function checkChat({ model, body }: SimulatedCall): SimulatedError | null {
  if (readRecords(body['messages']).length === 0) {
    return simulateError(400, 'invalid_request_error', "[] is too short - 'messages'");
  }
  if (listArguments(body).some((args) => !isJson(args))) {
    return simulateError(400, 'invalid_request_error', 'invalid tool call arguments');
  }
  for (const { content, tool_calls: calls } of readRecords(body['messages'])) {
    if (typeof content !== 'string' && !Array.isArray(content) && calls === undefined) {
      return simulateError(400, 'invalid_request_error', 'invalid message content type: <nil>');
    }
    for (const part of readRecords(content)) {
      const error = checkPart(part);
      if (error !== null) return simulateError(400, 'invalid_request_error', error);
    }
  }
  const effort = body['reasoning_effort'] ?? null;
  if (effort !== null && !efforts.has(effort)) {
    const message = `invalid reasoning value: ${JSON.stringify(effort)} (must be "minimal", "low", "medium", "high", "xhigh", "ultra", "max", or "none")`;
    return simulateError(400, 'invalid_request_error', message);
  }
  if (effort !== null && effort !== 'none' && !model.includes('reasoner')) {
    return simulateError(400, 'invalid_request_error', `"${model}" does not support thinking`);
  }
  if (!hasImage(body)) return null;
  const message =
    'Failed to create new sequence: failed to process inputs: this model is missing data required for image input';
  return simulateError(500, 'api_error', message);
}

function checkPart({ type, image_url: image }: JsonRecord): string | null {
  if (type === 'text') return null;
  if (type !== 'image_url') return 'invalid message format';
  const url = readText(typeof image === 'string' ? image : readRecord(image)['url']);
  if (/^https?:/.test(url)) {
    return 'image URLs are not currently supported, please use base64 encoded data instead';
  }
  return /^data:(?:image\/(?:jpeg|jpg|png|webp))?;base64,/.test(url) ? null : 'invalid image input';
}

/** Longer inputs than the context are cut off, without an error. */
function checkEmbeddings({ body }: SimulatedCall): SimulatedError | null {
  const format = body['encoding_format'] ?? 'float';
  if (format === 'float' || format === 'base64') return null;
  const message = `Invalid value for 'encoding_format' = ${JSON.stringify(format)}. Supported values: ['float', 'base64'].`;
  return simulateError(400, 'invalid_request_error', message);
}

function nameType(status: number): string {
  if (status === 400) return 'invalid_request_error';
  return status === 404 ? 'not_found_error' : 'api_error';
}

function writeMessage({
  reasoning_content: reasoning,
  refusal: _refusal,
  tool_calls: calls,
  ...message
}: JsonRecord): JsonRecord {
  return {
    ...message,
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(calls === undefined ? {} : { tool_calls: readRecords(calls).map(writeCall) }),
  };
}

function writeCall(call: JsonRecord, index: number): JsonRecord {
  const number = readText(call['id']).split('_').at(-1) || String(index);
  return { ...call, id: `call_${number.padStart(8, 'x')}`, index, type: 'function' };
}

function writeUsage(usage: JsonRecord, body: JsonRecord): JsonRecord {
  const { prompt_tokens, completion_tokens, total_tokens } = withOwnPrompt(usage, countPrompt(body));
  return { prompt_tokens, completion_tokens, total_tokens };
}
