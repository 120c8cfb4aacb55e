// decision 0030
import { createHash } from 'node:crypto';

/**
 * Identifies a turn of a conversation by the messages up to it, so that one conversation never finds what is stored for
 * another, even if a vendor restarts its tool call ids in every response (`functions.f:0`).
 *
 * Everything else that the model was shown or that identifies the end user is the call's setting: instructions, tools,
 * reasoning sent by the caller. Agents put the date into their instructions, and most clients drop reasoning, so the
 * setting is part of the hash only if the call's id could also occur in another conversation. Equivalent inputs have
 * the same hash: absent, null and empty content; one text or its parts; any whitespace and order of a call's arguments.
 * In longer arguments and settings (see `maxSortedCharacters`), the order counts.
 */

export interface HashedMessage {
  readonly role: string;
  readonly content?: unknown;
  readonly name?: string | null | undefined;
  readonly refusal?: string | null | undefined;
  readonly audio?: { readonly id?: string } | null | undefined;
  readonly reasoning_content?: string | null | undefined;
  readonly tool_calls?: readonly unknown[] | null | undefined;
  readonly tool_call_id?: string | null | undefined;
}

/** Request fields, besides the messages, that the model sees or that identify the end user. */
const settingFields = [
  'tools',
  'response_format',
  'web_search_options',
  'user',
  'safety_identifier',
  'prompt_cache_key',
] as const;

export type HashedRequest = Readonly<Partial<Record<(typeof settingFields)[number], unknown>>> & {
  readonly messages: readonly HashedMessage[];
};

export interface HashedCall {
  readonly id: string;
  readonly name: string;
  /** JSON as a string. */
  readonly arguments: string;
}

/** A tool call of a conversation, and the hash under which its reasoning is stored. */
export interface LocatedCall {
  readonly messageIndex: number;
  readonly toolCallId: string;
  readonly hash: string;
}

/** The state of a conversation: the hash of its messages, and the hash of its setting. */
export interface ConversationHash {
  readonly messagesHash: string;
  readonly settingHash: string;
}

/** Sorting the keys of JSON takes up to a microsecond per character, on the event loop. */
const maxSortedCharacters = 32_768;

/** The time that hashing a call takes besides its arguments, in characters. */
const fixedCharacters = 100;

/** Ids that are globally unique: the gateway's and Anthropic's. Other vendors do not guarantee it. */
const uniqueId = /^(?:call_gw_[0-9a-f]{32}|toolu_(?:bdrk_|vrtx_)?[A-Za-z0-9]{20,})$/;

/** Hashes a whole conversation, up to the model's next response. */
export function hashConversation(request: HashedRequest): ConversationHash {
  return request.messages.reduce(hashNext, beginConversation(request));
}

/** Hashes a tool call that a model made in response to a conversation. */
export function hashCall(
  { messagesHash, settingHash }: ConversationHash,
  modelId: string,
  call: HashedCall,
): string {
  const parts = [messagesHash, modelId, call.id, call.name, normalizeArguments(call.arguments)];
  return digest(uniqueId.test(call.id) ? parts : [...parts, settingHash]);
}

/** The tool calls of a message. */
export interface LocatedCalls {
  readonly calls: readonly LocatedCall[];
  /** Of the message, about: hashing takes time in proportion. */
  readonly characters: number;
}

/**
 * Lists the tool calls in a conversation, oldest first, message by message, so that the work can be spread over turns.
 * Skips calls without an id.
 */
export function* locateCalls(request: HashedRequest, modelId: string): Generator<LocatedCalls> {
  let conversation = beginConversation(request);
  for (const [messageIndex, message] of request.messages.entries()) {
    const calls = readCalls(message);
    const located = calls
      .filter(({ id }) => id !== '')
      .map((call) => ({
        messageIndex,
        toolCallId: call.id,
        hash: hashCall(conversation, modelId, call),
      }));
    conversation = hashNext(conversation, message);
    const { content } = message;
    const contentCharacters = typeof content === 'string' ? content.length : 0;
    yield {
      calls: located,
      characters: calls.reduce(
        (sum, call) => sum + call.arguments.length + fixedCharacters,
        contentCharacters,
      ),
    };
  }
}

function beginConversation(request: HashedRequest): ConversationHash {
  return {
    messagesHash: '',
    settingHash: digest(settingFields.map((field) => normalizeValue(request[field] ?? null))),
  };
}

function hashNext({ messagesHash, settingHash }: ConversationHash, message: HashedMessage): ConversationHash {
  const { role, tool_call_id: answeredId, name, refusal, audio, reasoning_content: reasoning } = message;
  const content = normalizeContent(message.content);
  if (role === 'system' || role === 'developer')
    return { messagesHash, settingHash: digest([settingHash, content, name ?? '']) };
  const calls = readCalls(message).map(({ id, name: called, arguments: text }) => [
    id,
    called,
    normalizeArguments(text),
  ]);
  const otherFields = [name ?? '', refusal ?? '', audio?.id ?? ''];
  return {
    messagesHash: digest([messagesHash, role, content, calls, answeredId ?? '', ...otherFields]),
    // Includes the position: the same reasoning before a different message is a different setting.
    settingHash: reasoning ? digest([settingHash, messagesHash, reasoning]) : settingHash,
  };
}

function digest(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('base64url').slice(0, 32);
}

function readCalls({ role, tool_calls: calls }: HashedMessage): HashedCall[] {
  if (role !== 'assistant' || !Array.isArray(calls)) return [];
  return calls.map((call: { id?: unknown; function?: { name?: unknown; arguments?: unknown } }) => ({
    id: readText(call.id),
    name: readText(call.function?.name),
    arguments: readText(call.function?.arguments),
  }));
}

/** Merges consecutive texts into one; leaves other parts unchanged. */
function normalizeContent(content: unknown): unknown[] {
  const segments: unknown[] = [];
  for (const part of Array.isArray(content) ? (content as unknown[]) : [content]) {
    const text = readPartText(part);
    if (text === null) segments.push([normalizeValue(part)]);
    else if (typeof segments.at(-1) === 'string') segments.push(String(segments.pop()) + text);
    else if (text !== '') segments.push(text);
  }
  return segments;
}

/** Returns null for a part that contains more than text. */
function readPartText(part: unknown): string | null {
  if (part === null || part === undefined) return '';
  if (typeof part === 'string') return part;
  if (typeof part !== 'object') return null;
  const { type, text, ...rest } = part as { type?: unknown; text?: unknown };
  const isText = (type ?? 'text') === 'text' && Object.values(rest).every((value) => value === null);
  return isText ? readText(text) : null;
}

function normalizeArguments(text: string): string {
  if (text.trim() === '') return '{}';
  if (text.length > maxSortedCharacters) return removeWhitespace(text);
  try {
    return JSON.stringify(sortKeys(JSON.parse(text)));
  } catch {
    // Not JSON, or nested too deeply to traverse. Compare it unchanged.
    return text;
  }
}

/** Removes the whitespace of JSON, which is outside its strings. */
const removeWhitespace = (json: string): string =>
  json.replaceAll(/("(?:[^"\\]|\\[^])*(?:"|\\?$))|\s+/g, '$1');

function normalizeValue(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const json = JSON.stringify(value);
  return json.length > maxSortedCharacters ? json : sortKeys(value);
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, inner]) => [key, sortKeys(inner)]));
}

function readText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
