import type { JsonRecord } from '../../../shared/encoding/json-record.ts';
import type { ChatBody, UpstreamTarget } from '../upstream.ts';
import { type ConversationInputs, toContents } from './to-contents.ts';
import { toGenerationConfig } from './to-generation-config.ts';
import { toTools } from './to-tools.ts';

/**
 * Converts an OpenAI chat request to Gemini's `generateContent` (Gemini API reference; the SDK's types). Omits fields
 * that it does not support: `user`, `logit_bias`, `metadata`, `parallel_tool_calls` and the like. Safety settings
 * keep the vendor's defaults. Pure.
 */
export function toChatRequest(
  target: UpstreamTarget,
  body: ChatBody,
  inputs: ConversationInputs,
): JsonRecord {
  const request = dropFields(body, target.drops);
  const generationConfig = toGenerationConfig(target, request);
  return {
    ...toContents(target, request, inputs),
    ...toTools(target, request),
    ...(Object.keys(generationConfig).length === 0 ? {} : { generationConfig }),
  };
}

/** Drops fields before translation, because routes name them as OpenAI does. */
function dropFields(body: ChatBody, drops: ReadonlySet<string>): ChatBody {
  const remainingFields = Object.entries(body).filter(([field]) => !drops.has(field));
  // Messages cannot be dropped, because every request needs them. The token limit is dropped only if the route drops
  // both of its names, because it limits the cost: a route that drops one name has a server that only supports the
  // other.
  const limits = ['max_tokens', 'max_completion_tokens'];
  const keepsLimit = !limits.every((field) => drops.has(field));
  const limitFields = Object.entries(body).filter(([field]) => keepsLimit && limits.includes(field));
  return { ...Object.fromEntries([...remainingFields, ...limitFields]), messages: body.messages };
}
