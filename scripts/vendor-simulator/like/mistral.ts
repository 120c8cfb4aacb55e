import type { JsonRecord } from '../../../shared/encoding/json-record.ts';
import type { SimulatedCall, SimulatedError } from '../dialect.ts';
import { readRecord, readRecords, readText } from '../json-record.ts';
import { gatherCalls, joinUsage } from './gather-chunks.ts';
import type { Personality } from './personality.ts';
import {
  countOwnTokens,
  countPrompt,
  keepFields,
  listInputs,
  mapChoices,
  mapMessages,
  mapUsage,
  readLimit,
  withOwnPrompt,
} from './read-chat.ts';

/**
 * Mistral's API of 2026. Sources: the fields in mistralai/client-python (models/chatcompletionrequest.py, the messages,
 * models/embeddingrequest.py, models/thinkchunk.py, chatcompletionchoice.py); the order of messages and ids of calls in
 * mistral-common's protocol/instruct/validator.py; the bodies of errors as users report them
 * (editor-code-assistant/eca#231, nearai/ironclaw#1241, raphaelmansuy/edgequake-llm#74).
 */

const context = 32_768;
const maxEmbeddingTokens = 8_192;
const maxBatchTokens = 16_384;
const maxBatchInputs = 512;

const toSet = (names: string): ReadonlySet<string> => new Set(names.split(/\s+/));

const chatFields = toSet(
  `model messages temperature top_p max_tokens stream stop random_seed metadata response_format tools tool_choice
  presence_penalty frequency_penalty n prediction parallel_tool_calls reasoning_effort prompt_mode guardrails
  prompt_cache_key safe_prompt`,
);
const embeddingFields = toSet('model input metadata output_dimension output_dtype encoding_format');
const messageFields: Readonly<Record<string, ReadonlySet<string>>> = {
  system: toSet('role content'),
  user: toSet('role content'),
  assistant: toSet('role content tool_calls prefix'),
  tool: toSet('role content tool_call_id name'),
};
const next: Readonly<Record<string, readonly string[]>> = {
  system: ['system', 'user', 'assistant'],
  user: ['system', 'user', 'assistant'],
  assistant: ['assistant', 'user', 'tool'],
  tool: ['assistant', 'tool'],
};
const callId = /^[a-zA-Z0-9]{9}$/;

export const mistral: Personality = {
  operations: ['chat', 'embeddings', 'models'],

  check: ({ operation, body }) => (operation.name === 'chat' ? checkChat(body) : checkEmbeddings(body)),

  // Usage is always reported.
  readBody: (body, { operation }) =>
    operation.name === 'chat'
      ? { ...body, stream_options: { include_usage: true } }
      : { ...body, dimensions: body['output_dimension'] },

  writeChat: (response, call) =>
    mapUsage(
      mapChoices(
        mapMessages(keepFields(response, responseFields), ({ refusal: _refusal, ...message }) =>
          writeParts({ tool_calls: null, ...message, content: message['content'] ?? '' }),
        ),
        (choice) => writeChoice(choice, call),
      ),
      (usage) => writeUsage(usage, call.body),
    ),

  writeChunks: (chunks, call) =>
    joinUsage(gatherCalls(chunks)).map((chunk) =>
      mapUsage(
        mapChoices(
          mapMessages(
            withoutNullUsage(keepFields(chunk, responseFields)),
            ({ refusal: _refusal, ...delta }) =>
              writeParts({ ...delta, content: delta['content'] ?? '' }, true),
          ),
          (choice) => writeChoice(choice, call),
        ),
        (usage) => writeUsage(usage, call.body),
      ),
    ),

  writeError: ({ status, message, type, code = null, details }) => {
    if (status === 401) return { detail: 'Unauthorized' };
    if (status === 404) return { message: 'no Route matched with those values' };
    const text = details === undefined ? message : { detail: details };
    return { object: 'error', message: text, type, param: null, code, raw_status_code: status };
  },
};

const responseFields = toSet('id object created model choices usage');

function checkChat(body: JsonRecord): SimulatedError | null {
  const messages = readRecords(body['messages']);
  const extra = [
    ...listExtra(body, chatFields, []),
    ...messages.flatMap((message, index) => {
      const role = readText(message['role']);
      const known = messageFields[role];
      return known === undefined
        ? [describeRole(role, index)]
        : listExtra(message, known, ['messages', index, role]);
    }),
  ];
  if (extra.length > 0) return fieldsError(extra);
  return checkIds(messages) ?? checkOrder(messages) ?? checkLength(body);
}

function listExtra(
  record: JsonRecord,
  known: ReadonlySet<string>,
  path: readonly (string | number)[],
): readonly object[] {
  return Object.entries(record).flatMap(([name, input]) =>
    known.has(name)
      ? []
      : [
          {
            type: 'extra_forbidden',
            loc: ['body', ...path, name],
            msg: 'Extra inputs are not permitted',
            input,
          },
        ],
  );
}

const describeRole = (role: string, index: number): object => ({
  type: 'union_tag_invalid',
  loc: ['body', 'messages', index],
  msg: `Input tag '${role}' found using 'role' does not match any of the expected tags: 'system', 'user', 'assistant', 'tool'`,
});

const fieldsError = (details: readonly object[]): SimulatedError => ({
  status: 422,
  type: 'invalid_request_error',
  message: 'Unprocessable Entity',
  details,
});

const mistralError = (type: string, code: string, message: string): SimulatedError => ({
  status: 400,
  type,
  code,
  message,
});

function checkIds(messages: readonly JsonRecord[]): SimulatedError | null {
  const ids = messages.flatMap((message) => [
    ...readRecords(message['tool_calls']).map((call) => call['id']),
    ...(message['role'] === 'tool' ? [message['tool_call_id']] : []),
  ]);
  const wrong = ids.findIndex((id) => typeof id !== 'string' || !callId.test(id));
  if (wrong === -1) return null;
  const message = `Tool call id was ${readText(ids[wrong]) || 'null'} but must be a-z, A-Z, 0-9, with a length of 9.`;
  return mistralError('invalid_function_call', '3280', message);
}

function checkOrder(messages: readonly JsonRecord[]): SimulatedError | null {
  const orderError = (message: string): SimulatedError =>
    mistralError('invalid_request_message_order', '3230', message);
  let open = 0;
  let before: string | null = null;
  for (const message of messages) {
    const role = readText(message['role']);
    if (before !== null && !(next[before] ?? []).includes(role)) {
      return orderError(`Unexpected role '${role}' after role '${before}'`);
    }
    open += role === 'tool' ? -1 : readRecords(message['tool_calls']).length;
    before = role;
  }
  if (open !== 0) return orderError('Not the same number of function calls and responses');
  const last = messages.at(-1);
  if (last?.['role'] !== 'assistant' || last['prefix'] === true) return null;
  return orderError(
    'Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant',
  );
}

function checkLength(body: JsonRecord): SimulatedError | null {
  const prompt = countPrompt(body);
  if (prompt < context) return null;
  const message = `Prompt contains ${prompt} tokens and 0 draft tokens, too large for model with ${context} maximum context length`;
  return mistralError('invalid_request_prompt', '3051', message);
}

function checkEmbeddings(body: JsonRecord): SimulatedError | null {
  const extra = listExtra(body, embeddingFields, []);
  if (extra.length > 0) return fieldsError(extra);
  const counts = listInputs(body).map(countOwnTokens);
  if (counts.length > maxBatchInputs) {
    const message = 'Too many inputs in request, split into more batches.';
    return mistralError('invalid_request_prompt', '3210', message);
  }
  const long = counts.findIndex((count) => count > maxEmbeddingTokens);
  if (long !== -1) {
    const message = `Input id ${long} has ${counts[long]} tokens, exceeding max ${maxEmbeddingTokens} tokens.`;
    return mistralError('invalid_request_prompt', '3210', message);
  }
  if (counts.reduce((sum, count) => sum + count, 0) <= maxBatchTokens) return null;
  const message = 'Too many tokens overall, split into more batches.';
  return mistralError('invalid_request_prompt', '3210', message);
}

/** Reasoning is a part of the content. In a stream, each piece is a list with one part, and text is a text. */
function writeParts(
  { reasoning_content: reasoning, content, tool_calls: calls, ...message }: JsonRecord,
  isDelta = false,
): JsonRecord {
  const written = {
    ...message,
    ...(calls === undefined ? {} : { tool_calls: calls === null ? null : readRecords(calls).map(writeCall) }),
  };
  if (reasoning === undefined) return { ...written, content };
  const thinking = { type: 'thinking', thinking: [{ type: 'text', text: reasoning }], closed: !isDelta };
  const parts = isDelta ? [thinking] : [thinking, { type: 'text', text: content }];
  return { ...written, content: parts };
}

/** A call has no type. */
function writeCall(call: JsonRecord, index: number): JsonRecord {
  const number = readText(call['id']).split('_').at(-1) || String(index);
  const { name, arguments: args } = readRecord(call['function']);
  return { id: number.padStart(9, 'Call0'), function: { name, arguments: args }, index };
}

/** It does not reject a limit that does not fit, but ends when its own context is full. */
function writeChoice(choice: JsonRecord, { body }: SimulatedCall): JsonRecord {
  const { logprobs: _logprobs, ...written } = choice;
  const isFull =
    choice['finish_reason'] === 'length' && countPrompt(body) + (readLimit(body) ?? context) > context;
  return isFull ? { ...written, finish_reason: 'model_length' } : written;
}

function withoutNullUsage({ usage, ...chunk }: JsonRecord): JsonRecord {
  return usage === null || usage === undefined ? chunk : { ...chunk, usage };
}

function writeUsage(usage: JsonRecord, body: JsonRecord): JsonRecord {
  const { prompt_tokens, total_tokens, completion_tokens } = withOwnPrompt(usage, countPrompt(body));
  return { prompt_tokens, total_tokens, completion_tokens, prompt_tokens_details: { cached_tokens: 0 } };
}
