import type { Faults } from '../faults.ts';
import { countTokens, type GeminiPlan, planSteps } from './gemini-steps.ts';
import type { JsonRecord } from '../../../shared/encoding/json-record.ts';
import { findCitedFrom, SEARCH_RESULTS } from '../web-search.ts';

export function renderWhole(plan: GeminiPlan, faults: Faults): object {
  const { script } = plan;
  const parts = mergeTexts(planSteps(plan).flatMap((step) => step.parts));
  const candidates = Array.from({ length: plan.candidates }, (_, index) =>
    renderCandidate(plan, index, parts, true),
  );
  const usage = renderUsage(plan, script.usage.reasoningTokens, countTokens(plan));
  return {
    candidates,
    ...(faults.usage === 'missing' ? {} : { usageMetadata: usage }),
    ...renderHead(plan),
  };
}

/** Merges the pieces of a stream into one part for a whole response. */
function mergeTexts(parts: readonly JsonRecord[]): readonly JsonRecord[] {
  const merged: JsonRecord[] = [];
  for (const part of parts) {
    const last = merged.at(-1);
    const isMore =
      typeof part['text'] === 'string' &&
      typeof last?.['text'] === 'string' &&
      part['thought'] === last['thought'];
    if (isMore) {
      merged[merged.length - 1] = {
        ...last,
        ...part,
        text: `${String(last['text'])}${String(part['text'])}`,
      };
    } else if (part['text'] !== '') {
      merged.push(part);
    }
  }
  return merged;
}

export function renderCandidate(
  { script }: GeminiPlan,
  index: number,
  parts: readonly JsonRecord[],
  finishes: boolean,
): JsonRecord {
  return {
    content: { ...(parts.length > 0 ? { parts } : {}), role: 'model' },
    ...(finishes ? { finishReason: script.finish === 'length' ? 'MAX_TOKENS' : 'STOP' } : {}),
    index,
    ...(finishes && script.searchQuery !== null
      ? { groundingMetadata: renderGrounding(script.searchQuery, script.pieces) }
      : {}),
  };
}

/** Describes which parts of the text, in UTF-8 bytes, are based on which sources. */
function renderGrounding(query: string, pieces: readonly string[]): object {
  const cited = pieces.slice(findCitedFrom(pieces)).join('');
  const endIndex = Buffer.byteLength(pieces.join(''));
  const startIndex = endIndex - Buffer.byteLength(cited);
  return {
    webSearchQueries: [query],
    searchEntryPoint: { renderedContent: '<div>Search suggestions</div>' },
    groundingChunks: SEARCH_RESULTS.map(({ url, title }) => ({ web: { uri: url, title } })),
    groundingSupports: [
      {
        // A segment at the start of the text omits `startIndex`.
        segment: { ...(startIndex > 0 ? { startIndex } : {}), endIndex, text: cited },
        groundingChunkIndices: SEARCH_RESULTS.map((_, index) => index),
      },
    ],
  };
}

export function renderHead({ model }: GeminiPlan): JsonRecord {
  return { modelVersion: model, responseId: 'simulated' };
}

/**
 * Renders the usage of all candidates together. Thoughts and searches are reported separately.
 * @param thoughts tokens of one candidate's thoughts
 * @param tokens one candidate's other tokens; null if the vendor does not report them yet
 */
export function renderUsage(plan: GeminiPlan, thoughts: number, tokens: number | null): JsonRecord {
  const { promptTokens, cachedTokens, searchTokens } = plan.script.usage;
  const candidateTokens = (tokens ?? 0) * plan.candidates;
  const thoughtTokens = thoughts * plan.candidates;
  return {
    promptTokenCount: promptTokens,
    ...(cachedTokens > 0 ? { cachedContentTokenCount: cachedTokens } : {}),
    ...(tokens === null ? {} : { candidatesTokenCount: candidateTokens }),
    totalTokenCount: promptTokens + candidateTokens + thoughtTokens + searchTokens,
    ...(searchTokens > 0 ? { toolUsePromptTokenCount: searchTokens } : {}),
    promptTokensDetails: [{ modality: 'TEXT', tokenCount: promptTokens }],
    ...(thoughtTokens > 0 ? { thoughtsTokenCount: thoughtTokens } : {}),
  };
}
