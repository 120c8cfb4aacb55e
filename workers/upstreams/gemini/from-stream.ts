import type { ChatStreamTranslator } from '../chat-stream.ts';
import { isCompleteJson, parseRecord } from '../json-value.ts';
import { createSseParser } from '../sse-parser.ts';
import { type ChatEvent, UpstreamError } from '../upstream.ts';
import { createBareJsonCutter } from './bare-json.ts';
import { type ResponseOptions, createResponseTranslator } from './response-translator.ts';
import { parseResponses } from './from-response.ts';

/** An image is one line. The largest images that Gemini generates have about 30 MB as base64. */
export const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

/**
 * Translates a chat stream as Gemini sends it with `alt=sse`. Each event is a complete response. There is no end
 * marker: the stream is complete if all candidates have a finish reason when the body ends. An error in the stream
 * arrives as bare JSON, and so does the whole stream from a server that does not support `alt=sse`.
 */
export function createChatStreamTranslator(options: ResponseOptions): ChatStreamTranslator {
  const parser = createSseParser({ maxEventLength: MAX_ANSWER_BYTES });
  const cutter = createBareJsonCutter();
  const translator = createResponseTranslator(options);

  function takeData(data: string): ChatEvent[] {
    return data.trim() === '' ? [] : translator.take(parseRecord(data, 'a chunk'));
  }

  return {
    isDone: false,

    get isFinished() {
      return translator.isFinished;
    },

    push(bytes, events) {
      for (const { data } of parser.push(cutter.cut(bytes))) {
        events.push(...takeData(data));
        events.push(...translator.reportUsage());
      }
      if (cutter.byteLength > MAX_ANSWER_BYTES) {
        throw new UpstreamError(
          'unavailable',
          'the upstream sent JSON instead of a stream, and it is too long',
        );
      }
    },

    end() {
      const events: ChatEvent[] = [];
      for (const { data } of parser.end()) {
        // The last event may lack its blank line, and may be complete or cut off. If it is cut off, so is the stream.
        if (isCompleteJson(data)) {
          events.push(...takeData(data));
        }
      }
      const bare = cutter.readText();
      for (const response of bare === null ? [] : parseResponses(bare)) {
        events.push(...translator.take(response));
      }
      return [...events, ...translator.end()];
    },
  };
}
