// decision 0029
import type { CatalogModel } from '../../catalog/catalog-schema.ts';
import type { ChatRequest } from '../../contract/chat.ts';
import type { ContentItem, Message, ToolCall } from '../../contract/chat-messages.ts';
import { measureSound } from '../documents/sound-length.ts';

/**
 * Lists the parts of a prepared chat that a vendor bills as prompt. Everything that is sent is included unless it is
 * excluded by name below, so that fields added later are billed automatically.
 */

/** Option values up to this length (`"temperature":0.2`) are not billed as prompt. Longer values are. */
const maxOptionCharacters = 64;

/** Images and audio, which are not tokenized as text. */
export interface PromptMedia {
  readonly images: number;
  readonly audioSeconds: number;
}

/** @param maxSeconds of audio; measuring may stop once this is exceeded */
export function countMedia({ messages }: ChatRequest, maxSeconds: number): PromptMedia {
  let images = 0;
  let audioSeconds = 0;
  for (const { image_url: image, input_audio: audio } of messages.flatMap(listParts)) {
    if (image) images += 1;
    if (audio && audioSeconds <= maxSeconds) {
      audioSeconds += measureSound(Buffer.from(audio.data, 'base64'), maxSeconds);
    }
  }
  return { images, audioSeconds };
}

export function hasFiles({ messages }: ChatRequest): boolean {
  return messages.some((message) => listParts(message).some(({ file }) => Boolean(file)));
}

/** Yields every text that is sent to the vendor, but not the bytes of images, audio and files. */
export function* listTexts(body: ChatRequest): Generator<string> {
  // Predicted text is billed as part of the response.
  const { messages, model: _model, prediction: _prediction, ...options } = body;
  for (const message of messages) yield* listMessageTexts(message);
  for (const option of Object.values(options)) {
    const text = typeof option === 'string' ? option : JSON.stringify(option);
    if (text !== undefined && text.length > maxOptionCharacters) yield text;
  }
}

function* listMessageTexts({ role, content, tool_calls: calls, ...rest }: Message): Generator<string> {
  yield* listValues(rest);
  const texts = Array.isArray(content)
    ? content.flatMap((part) => [...listPartTexts(part)])
    : [content ?? ''];
  // A tool result that is a JSON object is sent as an object, even if it arrived in several parts.
  if (role === 'tool') yield expandNumbers(texts.join(''));
  else yield* texts;
  for (const call of calls ?? []) yield* listCallTexts(call);
}

function* listPartTexts(part: ContentItem): Generator<string> {
  const { type: _type, image_url: image, file, input_audio: audio, ...rest } = part;
  yield* listValues(rest);
  if (image) {
    const { url: _url, ...more } = image;
    yield* listValues(more);
  }
  if (file) {
    const { file_data: _data, ...more } = file;
    yield* listValues(more);
  }
  if (audio) {
    const { data: _data, ...more } = audio;
    yield* listValues(more);
  }
}

function* listCallTexts({ type: _type, function: called, ...rest }: ToolCall): Generator<string> {
  const { arguments: text, ...more } = called;
  yield* listValues(rest);
  yield* listValues(more);
  if (text) yield expandNumbers(text);
}

/**
 * Yields string values as they are, and object values as JSON including their keys. Does not include the names of the
 * fields themselves, which belong to the format.
 */
function* listValues(fields: object): Generator<string> {
  for (const value of Object.values(fields)) {
    if (typeof value === 'string') yield value;
    else if (typeof value === 'object' && value !== null) yield JSON.stringify(value);
  }
}

/** A string or a number. Matches all numbers, so that the digits of a long one are read once. */
const stringOrNumber = /"(?:[^"\\]|\\[^])*(?:"|\\?$)|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/**
 * Returns JSON with its numbers written out, if that makes it longer. OpenAI's format has JSON objects as strings. For
 * dialects that take objects, the string is parsed and serialized again, which turns `1e20` into 21 digits. Does not
 * parse the text, because that takes up to a microsecond per character, on the event loop.
 */
function expandNumbers(json: string): string {
  if (!/\d[eE]\+?\d/.test(json) || !/^\s*[[{]/.test(json)) return json;
  return json.replaceAll(stringOrNumber, (match) => {
    if (match.startsWith('"') || !/[eE]/.test(match)) return match;
    const written = String(Number(match));
    return written.length > match.length && written !== 'Infinity' ? written : match;
  });
}

/** `<system>` and its closing tag around instructions in the middle of a conversation. */
const lateInstructionTokens = 10;
/** The envelope of a tool result: its kind, and `result` around plain text. */
const toolResultTokens = 6;
/** `{"name":…,"input_schema":{"type":"object","properties":{}}}` for a call to an undeclared tool. */
const undeclaredToolTokens = 16;
/** The name and type of a declared tool's schema, which OpenAI's format does not have. */
const declaredToolTokens = 8;
/** The filler turns `(The conversation begins.)` and `(Continue.)`. */
const turnFillTokens = 12;

/**
 * Lists what a translation to Anthropic's or Gemini's dialect adds to a conversation: a fixed number of tokens, and
 * function names that are repeated.
 */
export function listAdditions(
  body: ChatRequest,
  model: CatalogModel,
): { readonly tokens: number; readonly texts: readonly string[] } {
  const { messages, tools } = body;
  const isTranslated = model.routes.some(
    ({ upstream: { kind } }) => kind === 'anthropic' || kind === 'gemini',
  );
  if (!isTranslated) return { tokens: 0, texts: [] };
  const called = new Map<string, string>();
  const texts: string[] = [];
  let tokens = turnFillTokens + (tools?.length ?? 0) * declaredToolTokens;
  let hasBegun = false;
  for (const message of messages) {
    const isInstruction = message.role === 'system' || message.role === 'developer';
    if (isInstruction && hasBegun) tokens += lateInstructionTokens;
    hasBegun ||= !isInstruction;
    for (const {
      id,
      function: { name },
    } of message.tool_calls ?? [])
      called.set(id ?? '', name);
    if (message.role !== 'tool') continue;
    tokens += toolResultTokens;
    texts.push(called.get(message.tool_call_id ?? '') ?? '');
  }
  if (!tools?.length) {
    const names = new Set(called.values());
    tokens += names.size * undeclaredToolTokens;
    texts.push(...names);
  }
  return { tokens, texts };
}

function listParts({ content }: Message): ContentItem[] {
  return Array.isArray(content) ? content : [];
}
