import { isRecord, type JsonRecord } from '../../../shared/encoding/json-record.ts';
import { type ChatEvent, UpstreamError } from '../upstream.ts';
import { type ResponseOptions, createResponseTranslator } from './response-translator.ts';

/** Translates a complete chat response into the events of an equivalent stream. */
export function fromChatResponse(text: string, options: ResponseOptions): ChatEvent[] {
  const translator = createResponseTranslator(options);
  const events = parseResponses(text).flatMap((response) => translator.take(response));
  return [...events, ...translator.end()];
}

/** Parses the responses in a JSON body: a single one, or the array of chunks of a stream without `alt=sse`. */
export function parseResponses(text: string): JsonRecord[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new UpstreamError('unavailable', 'the upstream sent a response that is not JSON', { cause: error });
  }
  const responses: unknown[] = Array.isArray(value) ? value : [value];
  if (!responses.every(isRecord)) {
    throw new UpstreamError('unavailable', 'the upstream sent a response that is not a JSON object');
  }
  return responses;
}
