import { setTimeout as sleep } from 'node:timers/promises';
import { isRecord } from '../../../shared/encoding/json-record.ts';
import { sampleOfSchema } from '../../../shared/encoding/sample-of-schema.ts';
import { countTokens, countTokensAsync } from '../../../shared/catalog/count-tokens.ts';
import type { CallContext, ChatBody, ChatEvent, ChatMessage, FinishReason } from '../upstream.ts';

/** At most this much of the prompt is echoed; the remainder is only tokenized. */
const ECHOED_CHARS = 2000;
/** Tokens added for the role and frame of each message, and for the start of the response, as at OpenAI. */
const TOKENS_PER_MESSAGE = 3;
const TOKENS_TO_START_RESPONSE = 3;
const MAX_CHOICES = 128;

interface EchoOptions {
  /** Pause between two words of a streamed response, so that streaming is visible. */
  readonly wordPauseMs: number;
}

/** Texts within JSON are cut to this length: there may be many. */
const JSON_TEXT_CHARS = 100;

/** A tool call of the response. */
interface EchoCall {
  readonly name: string;
  readonly id: string;
}

interface EchoResponse {
  /** The text of the response, or the arguments of the call. */
  readonly text: string;
  readonly call: EchoCall | null;
}

/**
 * Responds with the caller's prompt and a note that it is not an AI; with `response_format`, with JSON that matches its
 * schema. If there are tools, it calls the one that the caller forces or the first one, until a result of one follows.
 * All choices requested with `n` are the same.
 */
export async function* runDemoEcho(
  body: ChatBody,
  stream: boolean,
  context: CallContext,
  options: EchoOptions,
): AsyncGenerator<readonly ChatEvent[]> {
  const { signal } = context;
  signal.throwIfAborted();
  const { text: whole, call } = composeResponse(body);
  const { text, isCut } = cutResponse(whole, body, call !== null);
  const finishReason: FinishReason = isCut ? 'length' : call === null ? 'stop' : 'tool_calls';
  const choices = Math.max(1, Math.min(MAX_CHOICES, readCount(body['n']) ?? 1));

  const pieces = stream ? splitIntoWords(text) : [text];
  for (const [position, content] of pieces.entries()) {
    if (position > 0) await pause(options.wordPauseMs, signal);
    signal.throwIfAborted();
    const delta = writeDelta(content, call, position === 0);
    yield forEachChoice(choices, (index) => ({ type: 'delta', index, delta }));
  }
  yield forEachChoice(choices, (index) => ({
    type: 'finish',
    index,
    finishReason,
    nativeFinishReason: finishReason,
  }));
  yield [
    {
      type: 'usage',
      usage: {
        promptTokens: await countPromptTokens(body, signal),
        completionTokens: countTokens(text) * choices,
        cachedTokens: null,
        cacheWriteTokens: null,
        reasoningTokens: null,
        webSearchTokens: null,
      },
    },
  ];
}

const forEachChoice = (choices: number, create: (index: number) => ChatEvent): ChatEvent[] =>
  Array.from({ length: choices }, (_, index) => create(index));

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (ms <= 0) return;
  try {
    await sleep(ms, undefined, { signal });
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
}

/** Returns the delta with the next piece of the text, or of the arguments of the call. */
function writeDelta(piece: string, call: EchoCall | null, isFirst: boolean): Record<string, unknown> {
  const role = isFirst ? { role: 'assistant' } : {};
  if (call === null) return { ...role, content: piece };
  const { id, name } = call;
  const toolCall = isFirst
    ? { index: 0, id, type: 'function', function: { name, arguments: piece } }
    : { index: 0, function: { arguments: piece } };
  return { ...role, tool_calls: [toolCall] };
}

function composeResponse(body: ChatBody): EchoResponse {
  const { messages } = body;
  const text = cutToChars(findPrompt(messages), JSON_TEXT_CHARS);
  const tool = chooseTool(body);
  if (tool !== null) {
    const { name, parameters } = tool;
    const id = `call_echo${messages.length}`;
    return { text: toJson(sampleOfSchema(parameters, text)), call: { name, id } };
  }
  const format = body['response_format'];
  if (isRecord(format) && format['type'] === 'json_object')
    return { text: JSON.stringify({ you_said: text }), call: null };
  if (isRecord(format) && isRecord(format['json_schema']))
    return { text: toJson(sampleOfSchema(format['json_schema']['schema'], text)), call: null };
  return { text: composeText(messages), call: null };
}

/** A schema such as `{"enum": []}` has no sample. */
const toJson = (value: unknown): string => JSON.stringify(value) ?? 'null';

/** The tool that the response calls: the one that the caller forces, otherwise the first, unless a result follows. */
function chooseTool(body: ChatBody): { readonly name: string; readonly parameters: unknown } | null {
  const choice = body['tool_choice'];
  const tools = (Array.isArray(body['tools']) ? body['tools'] : []).flatMap((tool: unknown) =>
    isRecord(tool) && isRecord(tool['function']) ? [tool['function']] : [],
  );
  const forced = isRecord(choice) && isRecord(choice['function']) ? choice['function']['name'] : null;
  const tool = tools.find(({ name }) => name === forced) ?? tools[0];
  if (tool === undefined || choice === 'none' || body.messages.at(-1)?.role === 'tool') return null;
  return { name: String(tool['name']), parameters: tool['parameters'] };
}

function findPrompt(messages: readonly ChatMessage[]): string {
  const message = messages.findLast(({ role }) => role === 'user');
  return message === undefined ? '' : readText(message).trim();
}

function composeText(messages: readonly ChatMessage[]): string {
  const intro = 'This is demo-echo: I am not an AI, I only echo what I was told.';
  const message = messages.findLast(({ role }) => role === 'user');
  if (message === undefined) return `${intro} You said nothing.`;
  const prompt = readText(message).trim();
  const sentences = [
    intro,
    prompt === '' ? 'You said nothing.' : `You said: ${cutToChars(prompt, ECHOED_CHARS)}`,
  ];
  if (prompt.length > ECHOED_CHARS) {
    sentences.push(`… (The first ${ECHOED_CHARS} of ${prompt.length} characters.)`);
  }
  const images = countParts(message, (type) => type.includes('image'));
  if (images > 0) sentences.push(`I also got ${images} ${images === 1 ? 'image' : 'images'}.`);
  const files = countParts(message, (type) => type.includes('file'));
  if (files > 0) sentences.push(`I also got ${files} ${files === 1 ? 'file' : 'files'}.`);
  const result = messages.at(-1);
  if (result?.role === 'tool')
    sentences.push(`The tool said: ${cutToChars(readText(result).trim(), ECHOED_CHARS)}`);
  return sentences.join(' ');
}

function readText({ content }: ChatMessage): string {
  if (typeof content === 'string') return content;
  return (content ?? []).map(({ text }) => (typeof text === 'string' ? text : '')).join('\n');
}

function countParts({ content }: ChatMessage, isCounted: (type: string) => boolean): number {
  if (!Array.isArray(content)) return 0;
  return content.filter(({ type }: Record<string, unknown>) => typeof type === 'string' && isCounted(type))
    .length;
}

/** Returns the response up to the first stop string, cut to the requested number of tokens. */
function cutResponse(whole: string, body: ChatBody, isCall: boolean): { text: string; isCut: boolean } {
  const stops = [isCall ? [] : body['stop']]
    .flat()
    .filter((stop) => typeof stop === 'string' && stop !== '') as string[];
  const ends = stops.map((stop) => whole.indexOf(stop)).filter((end) => end >= 0);
  const text = whole.slice(0, Math.min(whole.length, ...ends));
  const limit = readCount(body['max_completion_tokens']) ?? readCount(body['max_tokens']);
  if (limit === null || countTokens(text) <= limit) return { text, isCut: false };
  return { text: cutToTokens(text, limit), isCut: true };
}

/** Returns the longest prefix of at most `limit` tokens, by binary search. */
function cutToTokens(text: string, limit: number): string {
  let fittingLength = 0;
  let excessiveLength = text.length;
  while (excessiveLength - fittingLength > 1) {
    const middle = Math.floor((fittingLength + excessiveLength) / 2);
    if (countTokens(text.slice(0, middle)) <= limit) fittingLength = middle;
    else excessiveLength = middle;
  }
  return cutToChars(text, fittingLength);
}

/** Never splits a surrogate pair. */
function cutToChars(text: string, length: number): string {
  const splitsPair = length < text.length && /[\ud800-\udbff]/.test(text.charAt(length - 1));
  return text.slice(0, splitsPair ? length - 1 : length);
}

function splitIntoWords(text: string): readonly string[] {
  return text.split(/(?<=\S)(?=\s)/u);
}

async function countPromptTokens(body: ChatBody, signal: AbortSignal): Promise<number> {
  const { messages, tools } = body;
  let count = TOKENS_TO_START_RESPONSE;
  if (Array.isArray(tools) && tools.length > 0) {
    const limit = Number.MAX_SAFE_INTEGER;
    count += (await countTokensAsync(JSON.stringify(tools), { limit, signal })) ?? 0;
  }
  for (const message of messages) {
    const tokens = await countTokensAsync(readText(message), { limit: Number.MAX_SAFE_INTEGER, signal });
    count += TOKENS_PER_MESSAGE + (tokens ?? 0);
  }
  return count;
}

function readCount(value: unknown): number | null {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : null;
}
