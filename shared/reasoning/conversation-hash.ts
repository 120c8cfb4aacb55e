import { createHash } from 'node:crypto';

/**
 * Names a turn of a conversation by what was said up to it, so that what is kept for one conversation is never found
 * by another, even where a vendor counts its tool calls anew in every answer (`functions.f:0`).
 *
 * What else the model was shown, or names the end user, is the call's setting: instructions, tools, reasoning that the
 * caller sent along. Agents put the date into their instructions, and most clients drop reasoning, so it counts only
 * where the call's id could be another conversation's too. What clients write differently and mean the same hashes the
 * same: absent, null and empty content, one text or its parts, the spacing and order of a call's arguments.
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

/** Fields of a request, beside its messages, that the model is shown or that tell end users apart. */
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
  /** JSON as a text. */
  readonly arguments: string;
}

/** A tool call of a conversation, and the hash under which the reasoning that led to it is kept. */
export interface PlacedCall {
  readonly messageIndex: number;
  readonly toolCallId: string;
  readonly hash: string;
}

/** Where a conversation stands: the hashes of what was said, and of the setting. */
export interface ConversationHash {
  readonly said: string;
  readonly setting: string;
}

/** Ids that no two calls have: the gateway's own, and Anthropic's. What other vendors make of theirs nobody knows. */
const uniqueId = /^(?:call_gw_[0-9a-f]{32}|toolu_(?:bdrk_|vrtx_)?[A-Za-z0-9]{20,})$/;

/** The hash of a whole conversation: what the model's next answer follows. */
export function hashConversation(request: HashedRequest): ConversationHash {
  return request.messages.reduce(hashNext, beginConversation(request));
}

/** The hash of a tool call that a model made in answer to a conversation. */
export function hashCall({ said, setting }: ConversationHash, modelId: string, call: HashedCall): string {
  const ofCall = [said, modelId, call.id, call.name, normalizeArguments(call.arguments)];
  return digest(uniqueId.test(call.id) ? ofCall : [...ofCall, setting]);
}

/** The tool calls that a conversation shows, oldest first; those without an id are left out. */
export function placeCalls(request: HashedRequest, modelId: string): PlacedCall[] {
  const placed: PlacedCall[] = [];
  let conversation = beginConversation(request);
  for (const [messageIndex, message] of request.messages.entries()) {
    for (const call of readCalls(message)) {
      if (call.id === '') continue;
      placed.push({ messageIndex, toolCallId: call.id, hash: hashCall(conversation, modelId, call) });
    }
    conversation = hashNext(conversation, message);
  }
  return placed;
}

function beginConversation(request: HashedRequest): ConversationHash {
  return { said: '', setting: digest(settingFields.map((field) => sortKeys(request[field] ?? null))) };
}

function hashNext({ said, setting }: ConversationHash, message: HashedMessage): ConversationHash {
  const { role, tool_call_id: answeredId, name, refusal, audio, reasoning_content: reasoning } = message;
  const content = normalizeContent(message.content);
  if (role === 'system' || role === 'developer')
    return { said, setting: digest([setting, content, name ?? '']) };
  const calls = readCalls(message).map(({ id, name: called, arguments: text }) => [
    id,
    called,
    normalizeArguments(text),
  ]);
  const more = [name ?? '', refusal ?? '', audio?.id ?? ''];
  return {
    said: digest([said, role, content, calls, answeredId ?? '', ...more]),
    // With its place: the same thought before another message is another setting.
    setting: reasoning ? digest([setting, said, reasoning]) : setting,
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

/** Texts in a row are one text; other parts stay as they are. */
function normalizeContent(content: unknown): unknown[] {
  const segments: unknown[] = [];
  for (const part of Array.isArray(content) ? (content as unknown[]) : [content]) {
    const text = readPartText(part);
    if (text === null) segments.push([sortKeys(part)]);
    else if (typeof segments.at(-1) === 'string') segments.push(String(segments.pop()) + text);
    else if (text !== '') segments.push(text);
  }
  return segments;
}

/** Null for a part that is more than text. */
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
  try {
    return JSON.stringify(sortKeys(JSON.parse(text)));
  } catch {
    // Not JSON, or nested too deeply to walk: it is compared as it is written.
    return text;
  }
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
