import { createHash } from 'node:crypto';
import { isRecord } from '../../../shared/encoding/json-record.ts';
import { readImageUrl } from '../collect-media.ts';
import { readArray, readText } from '../json-value.ts';
import type { ChatMessage, LoadedMedia } from '../upstream.ts';
import type { Profile } from './profiles.ts';

type JsonBody = Record<string, unknown>;
type Images = ReadonlyMap<string, LoadedMedia>;

/** Writes the messages of a chat as the server wants them, without nulls and empty lists that our contract allows. */
export function toMessages(messages: readonly ChatMessage[], profile: Profile, images: Images): JsonBody[] {
  const written = messages.map((message) => toMessage(message, profile, images));
  const last = written.at(-1);
  if (profile.marksPrefix && last?.['role'] === 'assistant') last['prefix'] = true;
  return written;
}

function toMessage(message: ChatMessage, profile: Profile, images: Images): JsonBody {
  const { reasoning_content: reasoning, ...rest } = withoutNulls(message);
  const clean: JsonBody = rest;
  if (message.role === 'developer' && !profile.hasDeveloper) clean['role'] = 'system';
  if (!profile.hasNames && message.role !== 'tool') delete clean['name'];
  if (reasoning !== undefined && profile.reasoning !== null) clean[profile.reasoning] = reasoning;
  const calls = readArray(message.tool_calls);
  if (calls.length > 0) clean['tool_calls'] = calls.map((call) => toCall(call, profile));
  else delete clean['tool_calls'];
  const callId = readText(message.tool_call_id);
  if (callId !== null) clean['tool_call_id'] = toCallId(callId, profile);
  if (message.content === null) clean['content'] = null;
  else if (Array.isArray(message.content))
    clean['content'] = message.content.map((part: unknown) => toContentPart(part, images));
  return clean;
}

function toContentPart(part: unknown, images: Images): unknown {
  if (!isRecord(part)) return part;
  const clean = withoutNulls(part);
  for (const [name, value] of Object.entries(clean)) if (isRecord(value)) clean[name] = withoutNulls(value);
  // The contract allows a part without a type if its fields imply the type.
  clean['type'] ??= clean['image_url'] === undefined ? 'text' : 'image_url';
  const image = images.get(readImageUrl(part) ?? '');
  if (image === undefined) return clean;
  const link = isRecord(clean['image_url']) ? clean['image_url'] : {};
  return { ...clean, image_url: { ...link, url: `data:${image.mediaType};base64,${image.base64}` } };
}

function toCall(call: unknown, profile: Profile): unknown {
  if (!isRecord(call)) return call;
  // Remove extensions of Gemini's dialect, which are only for Gemini.
  const { extra_content: _extra, function: called, ...rest } = withoutNulls(call);
  const id = readText(rest['id']);
  return {
    ...rest,
    ...(id !== null && { id: toCallId(id, profile) }),
    ...(isRecord(called) && { function: toFunction(called) }),
  };
}

/** Some servers parse the arguments of earlier calls, and fail at those of a call without any. */
function toFunction(called: JsonBody): JsonBody {
  const clean = withoutNulls(called);
  const text = readText(clean['arguments']) ?? '';
  return text.trim() === '' ? { ...clean, arguments: '{}' } : clean;
}

const alphabet = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789';

/** Replaces an id that the server would reject. The same id always becomes the same one, in calls and their results. */
function toCallId(id: string, { callIds }: Profile): string {
  if (callIds === null || callIds.pattern.test(id)) return id;
  const bytes = createHash('sha256').update(id).digest();
  return Array.from(bytes.subarray(0, callIds.length), (byte) => alphabet[byte % alphabet.length]).join('');
}

function withoutNulls(value: object): JsonBody {
  return Object.fromEntries(
    Object.entries(value).filter(([, field]) => field !== null && field !== undefined),
  );
}
