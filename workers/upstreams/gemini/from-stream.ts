import type { ChatStreamTranslator } from '../chat-stream.ts';
import { parseRecord } from '../json-value.ts';
import { createSseParser } from '../sse-parser.ts';
import { type ChatEvent, UpstreamError } from '../upstream.ts';
import { createBareJsonCutter } from './bare-json.ts';
import { type AnswerOptions, createAnswerTranslator } from './from-answer.ts';
import { parseResponses } from './from-response.ts';

/** An image is one line. The largest that Gemini generates have some 30 MB as base64. */
export const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

/**
 * Translates a chat stream as Gemini sends it with `alt=sse`. Each event is a whole response. There is no end
 * mark, except that all candidates have a finish reason when the body closes. An error within arrives as bare
 * JSON, and so does the whole stream from a server that does not support `alt=sse`.
 */
export function createChatStreamTranslator(options: AnswerOptions): ChatStreamTranslator {
  const parser = createSseParser({ maxEventLength: MAX_ANSWER_BYTES });
  const cutter = createBareJsonCutter();
  const answer = createAnswerTranslator(options);

  function takeData(data: string): ChatEvent[] {
    return data.trim() === '' ? [] : answer.take(parseRecord(data, 'a chunk'));
  }

  return {
    isDone: false,

    get isFinished() {
      return answer.isFinished;
    },

    *push(bytes) {
      for (const { data } of parser.push(cutter.cut(bytes))) {
        yield* takeData(data);
        yield* answer.reportUsage();
      }
      if (cutter.byteLength > MAX_ANSWER_BYTES) {
        throw new UpstreamError('unavailable', 'the stream of the upstream is too long, and no stream');
      }
    },

    end() {
      const events: ChatEvent[] = [];
      for (const { data } of parser.end()) {
        // A last event without its blank line may be complete or cut off. A cut-off one means that the stream
        // was cut.
        if (isJson(data)) {
          events.push(...takeData(data));
        }
      }
      const bare = cutter.readText();
      for (const response of bare === null ? [] : parseResponses(bare)) {
        events.push(...answer.take(response));
      }
      return [...events, ...answer.end()];
    },
  };
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
