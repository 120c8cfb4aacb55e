// decision 0026
import { type ChatEvent, UpstreamError, type UpstreamUsage } from '../upstream.ts';
import { ChoiceReader, type ChoiceOptions } from './choice-reader.ts';
import { toEmbeddedError } from './from-error.ts';
import { isRecord, type JsonRecord } from '../../../shared/encoding/json-record.ts';
import { parseRecord, readArray, readCount, readText } from '../json-value.ts';

/** Translates a complete chat response into the events of an equivalent stream. Pure. */
export function fromChatResponse(text: string, options: ChoiceOptions): ChatEvent[] {
  const body = parseRecord(text, 'a chat response');
  if (isErrorBody(body)) {
    throw toEmbeddedError(body, options.apiKey);
  }
  const events: ChatEvent[] = [];
  const choices = new ChoiceReader(options);
  for (const [position, choice] of readArray(body['choices']).entries()) {
    if (isRecord(choice)) {
      const message = isRecord(choice['message']) ? choice['message'] : {};
      const complete = { ...message, role: 'assistant', content: message['content'] ?? '' };
      choices.take(choice, readCount(choice['index']) ?? position, toPieces(complete), events);
    }
  }
  events.push(...choices.finish());
  const usage = readUsage(body, null);
  if (events.length === 0) {
    events.push(...toEmptyResponse(usage));
  }
  if (usage !== null) {
    events.push({ type: 'usage', usage });
  }
  return events;
}

/** In a complete message, each entry is a separate call, even if a server gives all of them the same ID or index. */
function toPieces(message: JsonRecord): JsonRecord {
  const calls = readArray(message['tool_calls']);
  if (calls.length === 0) return message;
  return {
    ...message,
    tool_calls: calls.map((call, index) => ({ ...(isRecord(call) ? call : {}), index })),
  };
}

/**
 * Handles a response without choices. If the vendor reported tokens, something was generated, even if only reasoning,
 * and the vendor would bill every retry. So an empty text is returned, which is billed once.
 * @throws UpstreamError if the vendor reported no tokens
 */
export function toEmptyResponse(usage: UpstreamUsage | null): ChatEvent[] {
  if (!usage?.promptTokens && !usage?.completionTokens) {
    throw new UpstreamError('unavailable', 'the upstream sent a chat response without choices');
  }
  return [
    { type: 'delta', index: 0, delta: { role: 'assistant', content: '' } },
    { type: 'finish', index: 0, finishReason: 'stop', nativeFinishReason: null },
  ];
}

/**
 * Whether the body of a 200, or a chunk of a stream, is an error: `{"error": …}`, unless that is null, or one of the
 * forms without that field: `{"object": "error", …}`, `{"code": 500, "message": …}`, `{"detail": …}`.
 */
export function isErrorBody(body: JsonRecord): boolean {
  const { error } = body;
  const hasAnswer = body['choices'] !== undefined || body['data'] !== undefined;
  // Some servers send the field with every answer: null, false, or an empty text or object.
  const isEmpty = !error || (isRecord(error) && Object.keys(error).length === 0);
  if (!isEmpty || (!hasAnswer && (error ?? null) !== null)) return true;
  if (hasAnswer) return false;
  if (body['object'] === 'error') return true;
  const hasMessage = readText(body['message']) !== null;
  return (
    (body['detail'] ?? null) !== null || (hasMessage && (body['code'] ?? body['status'] ?? null) !== null)
  );
}

/**
 * Merges the usage in a body or chunk into the known usage: the last value of each field is used, including zero.
 * `prompt_tokens` includes cached tokens and `completionTokens` includes reasoning; the details are parts of them. Also
 * reads the fields of other vendors: Groq's `x_groq`, Moonshot's choices, DeepSeek's cache fields, Perplexity's
 * `reasoning_tokens`.
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
 * Returns the completion tokens. xAI, and Gemini in OpenAI's format, do not include reasoning in `completion_tokens`
 * but do in `total_tokens`; Perplexity includes it in neither. If the total exceeds its parts, the difference was
 * generated as well, unless it equals the cached tokens, which some servers do not include in `prompt_tokens`.
 */
function countCompletion(usage: JsonRecord, parts: Parts): number | null {
  const output = readCount(usage['completion_tokens']);
  if (output === null) {
    return null;
  }
  const { promptTokens, cachedTokens, cacheWriteTokens, reasoningTokens } = parts;
  const [reasoned, cached, written] = [reasoningTokens ?? 0, cachedTokens ?? 0, cacheWriteTokens ?? 0];
  const total = promptTokens === null ? 0 : (readCount(usage['total_tokens']) ?? 0);
  const remaining = total - (promptTokens ?? 0) - output;
  const isCached = remaining !== reasoned && [cached, written, cached + written].includes(remaining);
  // A part cannot exceed the whole, so if there is more reasoning than completion tokens, it is not included in them.
  return output + Math.max(0, isCached ? 0 : remaining, reasoned > output ? reasoned : 0);
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
