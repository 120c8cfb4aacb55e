import type { SimulatedResponse } from '../dialect.ts';
import type { Faults } from '../faults.ts';
import { renderCandidate, renderHead, renderUsage } from './gemini-response.ts';
import { countTokens, type GeminiPlan, planSteps } from './gemini-steps.ts';
import type { JsonRecord } from '../../../shared/encoding/json-record.ts';

type StreamFraming = 'events' | 'array';

const STREAM_ERROR = JSON.stringify(
  {
    error: { code: 503, message: 'The model is overloaded. Please try again later.', status: 'UNAVAILABLE' },
  },
  null,
  2,
);

export function renderStream(plan: GeminiPlan, framing: StreamFraming, faults: Faults): SimulatedResponse {
  const steps = planSteps(plan);
  const totalUsage = renderUsage(plan, plan.script.usage.reasoningTokens, countTokens(plan));
  const chunks: object[] = [];
  for (const [number, step] of steps.entries()) {
    const isLast = number === steps.length - 1;
    const finishes = isLast && faults.noEnd !== 'finish' && faults.noEnd !== 'both';
    const usageSoFar = renderUsage(
      plan,
      step.thoughtTokens,
      number === 0 && !isLast ? null : step.outputTokens,
    );
    for (let index = 0; index < plan.candidates; index += 1) {
      const position = { isFirst: chunks.length === 0, isLast: isLast && index === plan.candidates - 1 };
      const metadata = {
        ...selectUsage(faults.usage, position, isLast ? totalUsage : usageSoFar, totalUsage),
        ...renderHead(plan),
      };
      chunks.push({ candidates: [renderCandidate(plan, index, step.parts, finishes)], ...metadata });
      if (isLast && faults.duplicates === true) {
        // Repeat only the finish, not the text.
        chunks.push({ candidates: [renderCandidate(plan, index, [], finishes)], ...metadata });
      }
    }
  }
  return frameChunks(chunks, framing, faults);
}

function selectUsage(
  fault: Faults['usage'],
  { isFirst, isLast }: { readonly isFirst: boolean; readonly isLast: boolean },
  usageSoFar: JsonRecord,
  totalUsage: JsonRecord,
): { readonly usageMetadata?: JsonRecord } {
  switch (fault) {
    case 'missing':
      return {};
    case 'first':
      return isFirst ? { usageMetadata: totalUsage } : {};
    case 'finish':
      return isLast ? { usageMetadata: totalUsage } : {};
    case 'every':
      return { usageMetadata: totalUsage };
    default:
      return { usageMetadata: usageSoFar };
  }
}

/** A blocked prompt gets a 200 without candidates. */
export function renderBlocked(
  plan: GeminiPlan,
  framing: StreamFraming | null,
  faults: Faults,
): SimulatedResponse {
  const { promptTokens } = plan.script.usage;
  const usageMetadata = { promptTokenCount: promptTokens, totalTokenCount: promptTokens };
  const body = {
    promptFeedback: { blockReason: 'PROHIBITED_CONTENT' },
    ...(faults.usage === 'missing' ? {} : { usageMetadata }),
    ...renderHead(plan),
  };
  return framing === null
    ? { kind: 'whole', parts: [JSON.stringify(body, null, 2)] }
    : frameChunks([body], framing, faults);
}

function frameChunks(chunks: readonly object[], framing: StreamFraming, faults: Faults): SimulatedResponse {
  const texts = chunks.map((chunk) => JSON.stringify(chunk));
  if (framing === 'events') {
    return {
      kind: 'stream',
      contentType: 'text/event-stream',
      chunks: texts.map((text) => `data: ${text}\r\n\r\n`),
      // The vendor sends it as a plain body, not as an event.
      errorChunk: STREAM_ERROR,
    };
  }
  const framed = texts.map((text, index) => `${index === 0 ? '[' : ',\r\n'}${text}`);
  const isClosed = faults.noEnd !== 'mark' && faults.noEnd !== 'both';
  return {
    kind: 'stream',
    contentType: 'application/json; charset=UTF-8',
    chunks: isClosed ? [...framed, '\r\n]'] : framed,
    errorChunk: `,\r\n${STREAM_ERROR}\r\n]`,
  };
}
