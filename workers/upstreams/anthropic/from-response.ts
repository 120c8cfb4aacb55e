import { isRecord } from '../../../shared/encoding/json-record.ts';
import { parseRecord } from '../json-value.ts';
import { type ChatEvent, UpstreamError } from '../upstream.ts';
import type { MessageTranslator } from './response-translator.ts';
import { isErrorBody, toEmbeddedError } from './from-error.ts';

/** Translates a complete message into the events of an equivalent stream. Pure. */
export function fromMessage(text: string, translator: MessageTranslator, apiKey: string | null): ChatEvent[] {
  const message = parseRecord(text, 'a chat response');
  if (isErrorBody(message)) {
    throw toEmbeddedError(message, apiKey);
  }
  const content: unknown = message['content'];
  if (!Array.isArray(content)) {
    throw new UpstreamError('unavailable', 'the upstream sent a chat response without content');
  }
  // The usage is only reported at the end, because nothing can fail in between.
  const events = translator.beginMessage({});
  for (const [index, block] of content.entries()) {
    if (isRecord(block)) {
      events.push(...translator.beginBlock(index, block), ...translator.endBlock(index));
    }
  }
  translator.takeEnd(message['stop_reason'], message['usage']);
  events.push(...translator.endMessage());
  return events;
}
