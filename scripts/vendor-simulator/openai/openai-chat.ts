import { type ScriptInput, type ChatScript, type ScriptedToolCall, writeChatScript } from '../chat-script.ts';
import { countReceived } from '../count-received.ts';
import { findLastUserText, joinTexts, readToolResult, type Turn } from '../conversation.ts';
import type { SimulatedResponse, SimulatedCall } from '../dialect.ts';
import type { Faults } from '../faults.ts';
import { type JsonRecord } from '../../../shared/encoding/json-record.ts';
import { readRecord, readRecords, readText } from '../json-record.ts';
import { findCitedFrom, SEARCH_RESULTS } from '../web-search.ts';

const ID = 'chatcmpl-simulated';
const ERROR_CHUNK = toEvent({
  error: {
    message: 'The server had an error while processing your request.',
    type: 'server_error',
    code: null,
  },
});
const DONE_CHUNK = 'data: [DONE]\n\n';

/** Streams are built once per script, so that measurements include sending them but not building them. */
const MAX_CACHED_STREAMS = 64;
const cachedStreams = new Map<string, readonly Buffer[]>();

/**
 * A model reasons if its name contains `reasoner` or the request has a `reasoning_effort`. A model with `tools` calls the
 * first one (all of them if its name contains `parallel`), unless the last message has the role `tool`.
 */
export function handleChat(call: SimulatedCall): SimulatedResponse {
  const { body, model, faults } = call;
  const messages = readRecords(body['messages']);
  if (messages.length === 0) {
    return invalidRequest("'messages' must contain at least one message", 'messages');
  }
  const script = writeChatScript(readScriptInput(call, messages));
  const choices = typeof body['n'] === 'number' ? body['n'] : 1;
  if (body['stream'] !== true) {
    return { kind: 'whole', parts: [JSON.stringify(renderWhole(model, script, choices, body, faults))] };
  }
  const includesUsage = readRecord(body['stream_options'])['include_usage'] === true;
  return {
    kind: 'stream',
    contentType: 'text/event-stream; charset=utf-8',
    chunks: renderStream(
      { model, script, choices, includesUsage, hasLogprobs: body['logprobs'] === true },
      faults,
    ),
    errorChunk: ERROR_CHUNK,
  };
}

function invalidRequest(message: string, param: string): SimulatedResponse {
  return { kind: 'error', error: { status: 400, type: 'invalid_request_error', code: null, message, param } };
}

function readScriptInput(
  { body, model, settings }: SimulatedCall,
  messages: readonly JsonRecord[],
): ScriptInput {
  const tools = readRecords(body['tools']).map((tool) => {
    const { name, parameters } = readRecord(tool['function']);
    return { name: String(name), parameters };
  });
  const turns = messages.map(readTurn);
  const choice = body['tool_choice'];
  const forced = readRecord(readRecord(choice)['function'])['name'];
  const format = readRecord(body['response_format']);
  const maxTokens = body['max_completion_tokens'] ?? body['max_tokens'];
  const effort = body['reasoning_effort'] ?? 'none';
  return {
    model,
    promptTexts: turns.map((turn) => turn.text),
    receivedTokens: settings.promptTokens === 'received' ? countReceived(body) : null,
    lastUserText: findLastUserText(turns),
    tools,
    forcedTool: typeof forced === 'string' ? forced : null,
    callsTools: tools.length > 0 && choice !== 'none' && messages.at(-1)?.['role'] !== 'tool',
    callsInParallel: model.includes('parallel') && body['parallel_tool_calls'] !== false,
    earlierCalls: messages.flatMap((message) => readRecords(message['tool_calls'])).length,
    schema: readRecord(format['json_schema'])['schema'] ?? (format['type'] === 'json_object' ? {} : null),
    maxTokens: typeof maxTokens === 'number' && maxTokens > 0 ? maxTokens : null,
    usesReasoning: model.includes('reasoner') || effort !== 'none',
    usesWebSearch: body['web_search_options'] !== undefined && body['web_search_options'] !== null,
    replyWords: settings.replyWords,
  };
}

const SPEAKERS: Readonly<Record<string, Turn['speaker']>> = { user: 'user', assistant: 'model' };

/** Images, sound and files are accepted but not counted. */
function readTurn(message: JsonRecord): Turn {
  const { role, content } = message;
  const text =
    typeof content === 'string'
      ? content
      : joinTexts(readRecords(content).map((part) => readText(part['text'])));
  return {
    speaker: SPEAKERS[String(role)] ?? 'other',
    text: role === 'tool' ? readToolResult(text) : text,
  };
}

function renderWhole(
  model: string,
  script: ChatScript,
  choices: number,
  body: JsonRecord,
  faults: Faults,
): object {
  const text = script.pieces.join('');
  const message = {
    role: 'assistant',
    content: script.toolCalls.length > 0 ? null : text,
    refusal: null,
    ...(script.reasoning.length > 0 ? { reasoning_content: script.reasoning.join('') } : {}),
    ...(script.toolCalls.length > 0
      ? {
          tool_calls: script.toolCalls.map((call) => ({
            id: createCallId(call),
            type: 'function',
            function: { name: call.name, arguments: call.argumentPieces.join('') },
          })),
        }
      : {}),
    ...(script.searchQuery === null ? {} : { annotations: renderCitations(script) }),
  };
  const logprobs =
    body['logprobs'] === true ? { content: script.pieces.map(renderLogprob), refusal: null } : null;
  return {
    ...renderHead(model, 'chat.completion'),
    choices: Array.from({ length: choices }, (_, index) => ({
      index,
      message,
      logprobs,
      finish_reason: script.finish,
    })),
    ...(faults.usage === 'missing' ? {} : { usage: renderUsage(script, choices) }),
  };
}

interface StreamPlan {
  readonly model: string;
  readonly script: ChatScript;
  readonly choices: number;
  readonly includesUsage: boolean;
  readonly hasLogprobs: boolean;
}

function renderStream(plan: StreamPlan, faults: Faults): readonly Buffer[] {
  const { usage, duplicates, noEnd } = faults;
  const cacheKey = JSON.stringify([plan, usage, duplicates, noEnd]);
  let chunks = cachedStreams.get(cacheKey);
  if (chunks === undefined) {
    chunks = buildStream(plan, faults).map((text) => Buffer.from(text));
    if (cachedStreams.size >= MAX_CACHED_STREAMS) {
      cachedStreams.clear();
    }
    cachedStreams.set(cacheKey, chunks);
  }
  return chunks;
}

function buildStream(
  { model, script, choices, includesUsage, hasLogprobs }: StreamPlan,
  faults: Faults,
): string[] {
  const head = renderHead(model, 'chat.completion.chunk');
  const usagePosition = includesUsage ? (faults.usage ?? 'last') : 'missing';
  const usage = renderUsage(script, choices);
  const chunks: string[] = [];

  const add = (part: object, kind: 'begin' | 'middle' | 'finish' | 'usage'): void => {
    const isFirst = usagePosition === 'first' && chunks.length === 0;
    const reportsUsage =
      isFirst ||
      usagePosition === 'every' ||
      (usagePosition === 'finish' && kind === 'finish') ||
      kind === 'usage';
    const text = toEvent({
      ...head,
      ...part,
      ...(reportsUsage ? { usage } : includesUsage ? { usage: null } : {}),
    });
    chunks.push(text);
    if (faults.duplicates === true && kind !== 'middle') {
      chunks.push(text);
    }
  };
  const addToAll = (
    delta: object,
    finish: string | null,
    kind: 'begin' | 'middle' | 'finish',
    logprobs?: object,
  ): void => {
    for (let index = 0; index < choices; index += 1) {
      add({ choices: [{ index, delta, logprobs: logprobs ?? null, finish_reason: finish }] }, kind);
    }
  };

  addToAll(
    { role: 'assistant', content: script.toolCalls.length > 0 ? null : '', refusal: null },
    null,
    'begin',
  );
  for (const piece of script.reasoning) {
    addToAll({ reasoning_content: piece }, null, 'middle');
  }
  for (const piece of script.pieces) {
    const logprobs = hasLogprobs ? { content: [renderLogprob(piece)], refusal: null } : undefined;
    addToAll({ content: piece }, null, 'middle', logprobs);
  }
  for (const [index, call] of script.toolCalls.entries()) {
    const begin = {
      index,
      id: createCallId(call),
      type: 'function',
      function: { name: call.name, arguments: '' },
    };
    addToAll({ tool_calls: [begin] }, null, 'begin');
    for (const piece of call.argumentPieces) {
      addToAll({ tool_calls: [{ index, function: { arguments: piece } }] }, null, 'middle');
    }
  }
  if (script.searchQuery !== null) {
    addToAll({ annotations: renderCitations(script) }, null, 'middle');
  }
  if (faults.noEnd !== 'finish' && faults.noEnd !== 'both') {
    addToAll({}, script.finish, 'finish');
  }
  if (usagePosition === 'last') {
    add({ choices: [] }, 'usage');
  }
  if (faults.noEnd !== 'mark' && faults.noEnd !== 'both') {
    chunks.push(DONE_CHUNK);
  }
  return chunks;
}

function createCallId(call: ScriptedToolCall): string {
  return `call_simulated_${call.number}`;
}

/** Each source covers everything after the first word. */
function renderCitations({ pieces }: ChatScript): readonly object[] {
  const citedFrom = findCitedFrom(pieces);
  const start_index = pieces.slice(0, citedFrom).join('').length;
  return SEARCH_RESULTS.map(({ url, title }) => ({
    type: 'url_citation',
    url_citation: { start_index, end_index: pieces.join('').length, url, title },
  }));
}

function renderHead(model: string, object: string): object {
  return { id: ID, object, created: 1_700_000_000, model, service_tier: 'default', system_fingerprint: null };
}

/** OpenAI adds up the completions of all choices, and counts the prompt once. */
function renderUsage({ usage }: ChatScript, choices: number): object {
  const completion = usage.completionTokens * choices;
  return {
    prompt_tokens: usage.promptTokens,
    completion_tokens: completion,
    total_tokens: usage.promptTokens + completion,
    prompt_tokens_details: {
      cached_tokens: usage.cachedTokens,
      ...(usage.cacheWriteTokens > 0 ? { cache_write_tokens: usage.cacheWriteTokens } : {}),
      audio_tokens: 0,
    },
    completion_tokens_details: { reasoning_tokens: usage.reasoningTokens * choices, audio_tokens: 0 },
  };
}

function renderLogprob(token: string): object {
  return { token, logprob: -0.25, bytes: [...Buffer.from(token)], top_logprobs: [] };
}

function toEvent(chunk: object): string {
  return `data: ${JSON.stringify(chunk)}\n\n`;
}
