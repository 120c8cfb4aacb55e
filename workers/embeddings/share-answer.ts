import type { EmbeddingAnswer } from '../upstreams/upstream.ts';
import type { EmbeddedInput, WorkUnit } from './embedding-work.ts';
import { shareExactly } from './share-exactly.ts';

/** What a call brought each of its units: its vector, and its share of the tokens and of the time. */
export function shareAnswer(
  units: readonly WorkUnit[],
  { vectors, dimensions, promptTokens }: EmbeddingAnswer,
  tookMs: number,
): EmbeddedInput[] {
  const weights = units.map((unit) => unit.tokens);
  const tokens = shareExactly(promptTokens ?? weights.reduce((a, b) => a + b, 0), weights);
  const times = shareExactly(tookMs, weights);
  const size = dimensions * 4;
  return units.map((_, i) => ({
    vector: vectors.subarray(i * size, (i + 1) * size),
    dimensions,
    tokens: tokens[i]!,
    counted: promptTokens === null,
    billedMs: times[i]!,
  }));
}
