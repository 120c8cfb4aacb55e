import { type ChatEvent, type FinishReason, UpstreamError, type UpstreamUsage } from '../upstream.ts';
import { toErrorWithin } from './from-error.ts';
import {
  isRecord,
  type JsonRecord,
  lookUp,
  parseRecord,
  readArray,
  readCount,
  readText,
} from '../json-value.ts';
import { createToolCallNormalizer } from './tool-calls.ts';
import { readCitations } from './url-citations.ts';

/** Whole chat answers of OpenAI's API as ours. Pure; what is not as documented becomes an UpstreamError. */

/** A whole chat answer as the events that a stream of it would have given. */
export function fromChatResponse(text: string, apiKey: string | null): ChatEvent[] {
  const body = parseRecord(text, 'a chat answer');
  if (isErrorBody(body)) {
    throw toErrorWithin(body, apiKey);
  }
  const events: ChatEvent[] = [];
  for (const [position, choice] of readArray(body['choices']).entries()) {
    if (isRecord(choice)) {
      const index = readCount(choice['index']) ?? position;
      const message = isRecord(choice['message']) ? choice['message'] : {};
      const finish = toFinish(index, readText(choice['finish_reason']));
      events.push(toDelta(choice, message, index), ...readCitations(index, message), finish);
    }
  }
  const usage = readUsage(body, null);
  if (events.length === 0) {
    events.push(...answerNothing(usage));
  }
  if (usage !== null) {
    events.push({ type: 'usage', usage });
  }
  return events;
}

/**
 * What an answer without choices says. One that its vendor counted was generated, if only as reasoning, and is charged for
 * each time that it is asked for: an empty text costs once.
 * @throws UpstreamError where nothing was counted
 */
export function answerNothing(usage: UpstreamUsage | null): ChatEvent[] {
  if (!usage?.promptTokens && !usage?.completionTokens) {
    throw new UpstreamError('unavailable', 'the upstream sent a chat answer without choices');
  }
  return [{ type: 'delta', index: 0, delta: { role: 'assistant', content: '' } }, toFinish(0, null)];
}

function toDelta(choice: JsonRecord, message: JsonRecord, index: number): ChatEvent {
  const said = Object.fromEntries(Object.entries(message).filter(([, value]) => value !== null));
  // Each of a whole message is a call of its own, also where a server gives all of them one id.
  const calls = readArray(said['tool_calls']);
  if (calls.length > 0) {
    said['tool_calls'] = calls.map((call, position) => ({
      index: position,
      ...(isRecord(call) ? call : {}),
    }));
  }
  const delta = createToolCallNormalizer().normalize(index, { role: 'assistant', content: '', ...said });
  const logprobs = choice['logprobs'] ?? null;
  return logprobs === null ? { type: 'delta', index, delta } : { type: 'delta', index, delta, logprobs };
}

/** Whether a body of status 200, or a chunk of a stream, is an error: `{"error": …}` where null means none. */
export function isErrorBody(body: JsonRecord): boolean {
  const error = body['error'] ?? null;
  return error !== null || (body['object'] === 'error' && body['choices'] === undefined);
}

const FINISH_REASONS: Readonly<Record<string, FinishReason>> = {
  stop: 'stop',
  length: 'length',
  tool_calls: 'tool_calls',
  content_filter: 'content_filter',
  // The name that tool calls had before they were tools.
  function_call: 'tool_calls',
  // What servers in front of other models let through.
  max_tokens: 'length',
  tool_use: 'tool_calls',
  safety: 'content_filter',
};

export function toFinish(index: number, native: string | null): ChatEvent {
  const finishReason = lookUp(FINISH_REASONS, native) ?? 'stop';
  return { type: 'finish', index, finishReason, nativeFinishReason: native };
}

/**
 * Usage as it stands in a body or chunk, laid over what was known: the last word wins, field by field, and a zero is
 * a word. `prompt_tokens` includes the cached ones and `completionTokens` the reasoning; the details are parts of
 * them. Looks also where others than OpenAI put it: Groq's `x_groq`, Moonshot's choices, DeepSeek's cache fields,
 * Perplexity's `reasoning_tokens`.
 */
export function readUsage(body: JsonRecord, known: UpstreamUsage | null): UpstreamUsage | null {
  const usage = findUsage(body);
  if (usage === null) {
    return known;
  }
  const prompt = isRecord(usage['prompt_tokens_details']) ? usage['prompt_tokens_details'] : {};
  const completion = isRecord(usage['completion_tokens_details']) ? usage['completion_tokens_details'] : {};
  const parts = {
    promptTokens: readCount(usage['prompt_tokens']) ?? known?.promptTokens ?? null,
    cachedTokens:
      readCount(prompt['cached_tokens']) ??
      readCount(usage['prompt_cache_hit_tokens']) ??
      readCount(usage['cached_tokens']) ??
      known?.cachedTokens ??
      null,
    cacheWriteTokens: readCount(prompt['cache_write_tokens']) ?? known?.cacheWriteTokens ?? null,
    reasoningTokens:
      readCount(completion['reasoning_tokens']) ??
      readCount(usage['reasoning_tokens']) ??
      known?.reasoningTokens ??
      null,
    webSearchTokens: readCount(prompt['web_search_tokens']) ?? known?.webSearchTokens ?? null,
  };
  return { ...parts, completionTokens: countCompletion(usage, parts) ?? known?.completionTokens ?? null };
}

type Parts = Omit<UpstreamUsage, 'completionTokens'>;

/**
 * xAI, and Gemini in OpenAI's form, count reasoning beside `completion_tokens` and within `total_tokens`; Perplexity
 * counts it beside both. Where the total says more than its parts, the rest was generated as well, unless it is just
 * what was cached: some servers leave that out of `prompt_tokens`.
 */
function countCompletion(usage: JsonRecord, parts: Parts): number | null {
  const said = readCount(usage['completion_tokens']);
  if (said === null) {
    return null;
  }
  const { promptTokens, cachedTokens, cacheWriteTokens, reasoningTokens } = parts;
  const [reasoned, cached, written] = [reasoningTokens ?? 0, cachedTokens ?? 0, cacheWriteTokens ?? 0];
  const total = promptTokens === null ? 0 : (readCount(usage['total_tokens']) ?? 0);
  const rest = total - (promptTokens ?? 0) - said;
  const isCached = rest !== reasoned && [cached, written, cached + written].includes(rest);
  // A part is never more than its whole: so much reasoning is no part of what was said.
  return said + Math.max(0, isCached ? 0 : rest, reasoned > said ? reasoned : 0);
}

function findUsage(body: JsonRecord): JsonRecord | null {
  if (isRecord(body['usage'])) {
    return body['usage'];
  }
  if (isRecord(body['x_groq']) && isRecord(body['x_groq']['usage'])) {
    return body['x_groq']['usage'];
  }
  const choice = readArray(body['choices'])[0];
  return isRecord(choice) && isRecord(choice['usage']) ? choice['usage'] : null;
}
