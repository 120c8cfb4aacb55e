import type { JsonRecord } from '../json-value.ts';
import type { ChatBody, UpstreamTarget } from '../upstream.ts';
import { type Gathered, toContents } from './to-contents.ts';
import { toGenerationConfig } from './to-generation-config.ts';
import { toTools } from './to-tools.ts';

/**
 * A chat request of OpenAI's form as Gemini's `generateContent` takes it (Gemini API reference; the SDK's types). Fields
 * that it has no place for are left out: `user`, `logit_bias`, `metadata`, `parallel_tool_calls` and their like. Safety
 * settings stay the vendor's own. Pure.
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

/** Routes drop fields by OpenAI's names, so it happens before they have others. */
function leaveOut(body: ChatBody, drops: ReadonlySet<string>): ChatBody {
  const kept = Object.entries(body).filter(([field]) => !drops.has(field));
  // Without the messages there is no request left. A bound is dropped by both its names or not at all, for it is
  // money: a route that drops one of them speaks of servers that know only the other.
  const bounds = ['max_tokens', 'max_completion_tokens'];
  const keepsBound = !bounds.every((field) => drops.has(field));
  const bound = Object.entries(body).filter(([field]) => keepsBound && bounds.includes(field));
  return { ...Object.fromEntries([...kept, ...bound]), messages: body.messages };
}
