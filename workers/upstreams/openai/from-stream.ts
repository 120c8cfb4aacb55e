// decision 0025
import type { ChatStreamTranslator } from '../chat-stream.ts';
import { createSseParser, type SseEvent } from '../sse-parser.ts';
import { type ChatEvent, UpstreamError, type UpstreamUsage } from '../upstream.ts';
import { toEmbeddedError } from './from-error.ts';
import { toEmptyResponse, isErrorBody, readUsage } from './from-response.ts';
import { ChoiceReader, type ChoiceOptions } from './choice-reader.ts';
import { isRecord, type JsonRecord } from '../../../shared/encoding/json-record.ts';
import { isCompleteJson, parseRecord, readArray, readCount } from '../json-value.ts';
import { TextChunkReader } from './text-chunk.ts';

const DONE = '[DONE]';
/** An image is one line, as a data URI. The limit is the same as for a complete response. */
const MAX_EVENT_BYTES = 64 * 1024 * 1024;

export interface ChatStreamOptions extends ChoiceOptions {}

/**
 * Translates a chat stream as OpenAI sends it, and with the deviations of compatible servers: usage on any chunk, a
 * repeated last chunk, output after a finish reason, or an end with `finish_reason` but without `[DONE]`, or the
 * reverse. A repeated piece of text cannot be distinguished from a model that repeats itself, so it is passed on. A
 * repeated end or usage is used once.
 *
 * Usage before the end is partial until its count of completion tokens grows, because some servers send zeros, or the
 * numbers of their first chunk, until they send the real ones. It stays partial if output follows it but the count
 * never grows.
 */
export function createChatStreamTranslator(options: ChatStreamOptions): ChatStreamTranslator {
  const parser = createSseParser({ maxEventLength: MAX_EVENT_BYTES });
  const textChunks = new TextChunkReader();
  const choices = new ChoiceReader(options);
  let usage: UpstreamUsage | null = null;
  let isGrowing = false;
  let isLastReportPartial = false;
  /** Whether output has arrived since the last chunk with usage. */
  let hasOutputSinceUsage = false;
  let hasOutput = false;
  /** Whether the last chunk was only the usage of hidden output, after which nothing follows. */
  let endsWithUsage = false;
  let isDone = false;
  /** Whether the ends of the choices were reported. */
  let hasFinished = false;
  let hasEnded = false;

  function takeEvent({ event, data }: SseEvent, events: ChatEvent[]): void {
    if (isDone) {
      return;
    }
    if (event === 'error') {
      throw toEmbeddedError(parseErrorText(data), options.apiKey);
    }
    takeData(data, events);
  }

  function takeData(data: string, events: ChatEvent[]): void {
    const text = textChunks.read(data);
    if (text !== null) {
      takeText(text, events);
      return;
    }
    const trimmed = data.trim();
    if (trimmed === '') {
      return;
    }
    if (trimmed === DONE) {
      isDone = true;
      finishAll(events);
      return;
    }
    const chunk = parseRecord(data, 'a chunk');
    if (isErrorBody(chunk)) {
      throw toEmbeddedError(chunk, options.apiKey);
    }
    const previousUsage = usage;
    usage = readUsage(chunk, previousUsage);
    const choicesInChunk = readArray(chunk['choices']);
    endsWithUsage =
      usage !== previousUsage &&
      choicesInChunk.length === 0 &&
      !hasOutput &&
      (usage?.completionTokens ?? 0) > 0;
    const before = events.length;
    for (const choice of choicesInChunk) {
      if (isRecord(choice) && !hasFinished) {
        takeChoice(choice, events);
      }
    }
    // Nothing but the end follows the usage of a finished response.
    if (choicesInChunk.length === 0 && usage !== previousUsage && isFinished()) {
      finishChoices(events);
    }
    // Output in a chunk with usage is included in its counts.
    hasOutputSinceUsage = usage === previousUsage && (hasOutputSinceUsage || hasDelta(events, before));
    if (usage === previousUsage) {
      learnText(data, choicesInChunk);
    } else if (usage !== null && !isSameUsage(usage, previousUsage)) {
      isGrowing ||= (usage.completionTokens ?? 0) > (previousUsage?.completionTokens ?? Infinity);
      reportUsage(usage, !isGrowing && !isFinished(), events);
    }
  }

  /** Takes a chunk whose only choice is the first one, with nothing but this text. */
  function takeText(content: string, events: ChatEvent[]): void {
    if (hasFinished) {
      return;
    }
    endsWithUsage = false;
    const choice = choices.open(0);
    if (choice === null) return;
    hasOutput ||= content !== '';
    hasOutputSinceUsage = true;
    events.push({ type: 'delta', index: choice.index, delta: { content } });
  }

  function learnText(data: string, choicesInChunk: readonly unknown[]): void {
    const [choice, ...others] = choicesInChunk;
    if (others.length > 0 || !isRecord(choice) || !isRecord(choice['delta'])) {
      return;
    }
    const { index = 0, delta, finish_reason: finishReason = null, logprobs = null, ...unknown } = choice;
    const { content, ...moreOutput } = delta;
    const isText = typeof content === 'string' && Object.keys(moreOutput).length === 0;
    const isFirst = index === 0 && finishReason === null && logprobs === null;
    if (isText && isFirst && Object.keys(unknown).length === 0) {
      textChunks.learn(data, content);
    }
  }

  function reportUsage(reported: UpstreamUsage, isPartial: boolean, events: ChatEvent[]): void {
    isLastReportPartial = isPartial;
    events.push({ type: 'usage', usage: reported, ...(isPartial && { isPartial }) });
  }

  function takeChoice(choice: JsonRecord, events: ChatEvent[]): void {
    const delta = isRecord(choice['delta']) ? choice['delta'] : {};
    const before = events.length;
    choices.take(choice, readCount(choice['index']) ?? 0, delta, events);
    for (let i = before; i < events.length; i++) {
      const event = events[i]!;
      if (event.type === 'delta') {
        hasOutput ||= Object.entries(event.delta).some(([name, value]) => name !== 'role' && value !== '');
      }
    }
  }

  function finishChoices(events: ChatEvent[]): void {
    if (hasFinished) {
      return;
    }
    hasFinished = true;
    events.push(...(choices.count === 0 ? toEmptyResponse(usage) : choices.finish()));
  }

  function finishAll(events: ChatEvent[]): void {
    if (hasEnded) {
      return;
    }
    hasEnded = true;
    finishChoices(events);
    if (usage !== null && isLastReportPartial && !hasOutputSinceUsage) {
      reportUsage(usage, false, events);
    }
  }

  /** The last event may lack its blank line, and may be complete or cut off. If it is cut off, so is the stream. */
  function takeLast(last: SseEvent, events: ChatEvent[]): void {
    if (last.data.trim() === DONE || isCompleteJson(last.data)) {
      takeEvent(last, events);
    }
  }

  function isFinished(): boolean {
    return choices.count >= (options.choices ?? 1) && choices.isEachFinished;
  }

  return {
    get isDone() {
      return isDone;
    },

    get isFinished() {
      return isFinished();
    },

    push(bytes, events) {
      for (const event of parser.push(bytes)) {
        takeEvent(event, events);
      }
    },

    end() {
      const events: ChatEvent[] = [];
      for (const event of isDone ? [] : parser.end()) {
        takeLast(event, events);
      }
      if (!hasEnded && !isFinished() && !endsWithUsage) {
        throw new UpstreamError('unavailable', 'the upstream stream ended before it was complete');
      }
      finishAll(events);
      return events;
    },
  };
}

/** The data of an `error` event, which may be JSON or a text. */
function parseErrorText(data: string): unknown {
  try {
    const value: unknown = JSON.parse(data);
    return typeof value === 'string' ? { message: value } : value;
  } catch {
    return { message: data };
  }
}

/** Whether there is a delta from this index on. */
function hasDelta(events: readonly ChatEvent[], start: number): boolean {
  for (let i = start; i < events.length; i++) {
    if (events[i]!.type === 'delta') {
      return true;
    }
  }
  return false;
}

function isSameUsage(one: UpstreamUsage, other: UpstreamUsage | null): boolean {
  if (one === other) {
    return true;
  }
  const names = Object.keys(one) as (keyof UpstreamUsage)[];
  return other !== null && names.every((name) => one[name] === other[name]);
}
