import { createHash } from 'node:crypto';

/**
 * Names a turn of a conversation by what was said up to it, so that what is kept for one conversation is never found
 * by another, even where a vendor counts its tool calls anew in every answer (`functions.f:0`).
 *
 * Instructions are hashed apart, because agents put the date there; reasoning is left out because most clients drop it.
 * What clients write differently and mean the same hashes the same: absent, null and empty content, one text or its
 * parts, the spacing and order of a call's arguments.
 */

export interface HashedMessage {
  readonly role: string;
  readonly content?: unknown;
  readonly tool_calls?: readonly unknown[] | null | undefined;
  readonly tool_call_id?: string | null | undefined;
}

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
  /** Of the instructions that stood before the call. */
  readonly instructionsHash: string;
}

const noMessages = '';
const noInstructions = digest([]);

/** The hash of a whole conversation: what the model's next answer follows. */
export function hashConversation(messages: readonly HashedMessage[]): string {
  return messages.reduce(hashNext, noMessages);
}

/** The hash of the instructions of a conversation, 32 characters long. */
export function hashInstructions(messages: readonly HashedMessage[]): string {
  return messages.reduce(hashNextInstructions, noInstructions);
}

/** The hash of a tool call that a model made in answer to a conversation. */
export function hashCall(conversationHash: string, modelId: string, call: HashedCall): string {
  return digest([conversationHash, modelId, call.id, call.name, normalizeArguments(call.arguments)]);
}

/** The tool calls that a conversation shows, oldest first; those without an id are left out. */
export function placeCalls(messages: readonly HashedMessage[], modelId: string): PlacedCall[] {
  const placed: PlacedCall[] = [];
  let conversation = noMessages;
  let instructionsHash = noInstructions;
  for (const [messageIndex, message] of messages.entries()) {
    for (const call of readCalls(message)) {
      if (call.id === '') continue;
      const hash = hashCall(conversation, modelId, call);
      placed.push({ messageIndex, toolCallId: call.id, hash, instructionsHash });
    }
    conversation = hashNext(conversation, message);
    instructionsHash = hashNextInstructions(instructionsHash, message);
  }
  return placed;
}

function hashNext(before: string, message: HashedMessage): string {
  const { role, content, tool_call_id: answeredId } = message;
  if (isInstruction(message)) return before;
  const calls = readCalls(message).map(({ id, name, arguments: text }) => [
    id,
    name,
    normalizeArguments(text),
  ]);
  return digest([before, role, normalizeContent(content), calls, answeredId ?? '']);
}

function hashNextInstructions(before: string, message: HashedMessage): string {
  return isInstruction(message) ? digest([before, normalizeContent(message.content)]) : before;
}

function isInstruction({ role }: HashedMessage): boolean {
  return role === 'system' || role === 'developer';
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
