import type { ChatStreamTranslator } from '../chat-stream.ts';
import { isRecord, type JsonRecord } from '../../../shared/encoding/json-record.ts';
import { isCompleteJson, parseRecord, readCount } from '../json-value.ts';
import { createSseParser } from '../sse-parser.ts';
import { type ChatEvent, UpstreamError } from '../upstream.ts';
import type { MessageTranslator } from './response-translator.ts';
import { isErrorBody, toEmbeddedError } from './from-error.ts';

/** Search results arrive encrypted in a single event: ten pages of some tens of kilobytes each. */
const MAX_EVENT_BYTES = 8 * 1024 * 1024;

/**
 * Translates a stream of the Messages API: `message_start`; for each content block `content_block_start`, its deltas
 * and `content_block_stop`; then `message_delta` and `message_stop`. The data includes the event's type, so the
 * `event:` line is not needed. `ping` may occur anywhere, and unknown events are skipped.
 */
export function createChatStreamTranslator(
  translator: MessageTranslator,
  apiKey: string | null,
): ChatStreamTranslator {
  const parser = createSseParser({ maxEventLength: MAX_EVENT_BYTES });
  let hasBegun = false;
  let isDone = false;

  function take(data: string): ChatEvent[] {
    if (isDone || data.trim() === '') {
      return [];
    }
    const event = parseRecord(data, 'an event');
    if (isErrorBody(event)) {
      throw toEmbeddedError(event, apiKey);
    }
    if (event['type'] === 'message_start' && !hasBegun) {
      hasBegun = true;
      return translator.beginMessage(readRecord(event['message']));
    }
    return hasBegun ? takeEvent(event) : [];
  }

  function takeEvent(event: JsonRecord): ChatEvent[] {
    const index = readCount(event['index']) ?? 0;
    switch (event['type']) {
      case 'content_block_start':
        return translator.beginBlock(index, readRecord(event['content_block']));
      case 'content_block_delta':
        return translator.extendBlock(index, readRecord(event['delta']));
      case 'content_block_stop':
        return translator.endBlock(index);
      case 'message_delta':
        return translator.takeEnd(readRecord(event['delta'])['stop_reason'], event['usage']);
      case 'message_stop':
        isDone = true;
        return translator.endMessage();
      default:
        return [];
    }
  }

  return {
    get isDone() {
      return isDone;
    },

    get isFinished() {
      return isDone;
    },

    push(bytes, events) {
      for (const { data } of parser.push(bytes)) {
        events.push(...take(data));
      }
    },

    end() {
      // The last event may lack its blank line, and may be complete or cut off. If it is cut off, so is the stream.
      const events = isDone
        ? []
        : parser.end().flatMap(({ data }) => (isCompleteJson(data) ? take(data) : []));
      if (!isDone) {
        throw new UpstreamError('unavailable', 'the upstream stream ended before it was complete');
      }
      return events;
    },
  };
}

function readRecord(value: unknown): JsonRecord {
  return isRecord(value) ? value : {};
}
