import { isRecord, parseRecord } from '../json-value.ts';
import { type ChatEvent, UpstreamError } from '../upstream.ts';
import type { Answer } from './answer.ts';
import { isErrorBody, toErrorWithin } from './from-error.ts';

/** A whole message of the API as the events that a stream of it would have given. Pure. */
export function fromMessage(text: string, answer: Answer, apiKey: string | null): ChatEvent[] {
  const message = parseRecord(text, 'a chat answer');
  if (isErrorBody(message)) {
    throw toErrorWithin(message, apiKey);
  }
  const content: unknown = message['content'];
  if (!Array.isArray(content)) {
    throw new UpstreamError('unavailable', 'the upstream sent a chat answer without content');
  }
  // Its usage comes with its end: nothing can break in between.
  const events = answer.beginMessage({});
  for (const [index, block] of content.entries()) {
    if (isRecord(block)) {
      events.push(...answer.beginBlock(index, block), ...answer.endBlock(index));
    }
  }
  answer.takeEnd(message['stop_reason'], message['usage']);
  events.push(...answer.endMessage());
  return events;
}
