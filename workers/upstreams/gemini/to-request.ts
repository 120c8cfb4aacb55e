import type { JsonRecord } from '../../../shared/encoding/json-record.ts';
import type { ChatBody, UpstreamTarget } from '../upstream.ts';
import { type Gathered, toContents } from './to-contents.ts';
import { toGenerationConfig } from './to-generation-config.ts';
import { toTools } from './to-tools.ts';

/**
 * Converts an OpenAI chat request to Gemini's `generateContent` (Gemini API reference; the SDK's types). Leaves
 * out fields that it does not support: `user`, `logit_bias`, `metadata`, `parallel_tool_calls` and the like.
 * Safety settings keep the vendor's defaults. Pure.
 */
export function toChatRequest(target: UpstreamTarget, body: ChatBody, gathered: Gathered): JsonRecord {
  const asked = leaveOut(body, target.drops);
  const generationConfig = toGenerationConfig(target, asked);
  return {
    ...toContents(target, asked, gathered),
    ...toTools(target, asked),
    ...(Object.keys(generationConfig).length === 0 ? {} : { generationConfig }),
  };
}

/** Drops fields before translation, because routes name them as OpenAI does. */
function leaveOut(body: ChatBody, drops: ReadonlySet<string>): ChatBody {
  const kept = Object.entries(body).filter(([field]) => !drops.has(field));
  // A request is not possible without messages. The token limit is dropped under both names or not at all,
  // because it limits the cost: a route that drops one name means servers that only know the other.
  const bounds = ['max_tokens', 'max_completion_tokens'];
  const keepsBound = !bounds.every((field) => drops.has(field));
  const bound = Object.entries(body).filter(([field]) => keepsBound && bounds.includes(field));
  return { ...Object.fromEntries([...kept, ...bound]), messages: body.messages };
}
