import { AppError } from '../../shared/contract/errors.ts';
import { countTokens } from '../../shared/pricing/count-tokens.ts';
import { UpstreamError, type EmbeddingAnswer } from '../upstreams/upstream.ts';
import type { Claim, EmbeddedInput, VectorHold, WorkUnit } from './embedding-work.ts';
import { shareExactly } from './share-exactly.ts';

export interface EmbeddedUnit {
  readonly unit: WorkUnit;
  readonly outcome: EmbeddedInput;
}

/**
 * A vector that is not all finite numbers is no answer, and JSON could not tell it. One of several is the fault of its
 * input, and of nobody else whose inputs went with it; where there is no other, it is the upstream's.
 * @returns the units that have their vector now
 * @throws UpstreamError when no vector is finite; nothing is delivered then
 */
export function deliverVectors(
  units: readonly WorkUnit[],
  answer: EmbeddingAnswer,
  hold: VectorHold | null,
  tookMs: number,
): EmbeddedUnit[] {
  const counted = answer.promptTokens === null;
  const weights = weigh(units, answer.promptTokens);
  const tokens = shareExactly(answer.promptTokens ?? sum(weights), weights);
  const times = shareExactly(tookMs, weights);
  const size = answer.dimensions * 4;
  const broken = new Set(answer.broken);
  if (broken.size === units.length) {
    throw new UpstreamError('unavailable', 'the upstream sent no vector of finite numbers');
  }
  const embedded: EmbeddedUnit[] = [];
  for (const [i, unit] of units.entries()) {
    if (broken.has(i)) {
      unit.fail(notFinite);
      continue;
    }
    const outcome: EmbeddedInput = {
      vector: answer.vectors.subarray(i * size, (i + 1) * size),
      hold,
      dimensions: answer.dimensions,
      tokens: tokens[i]!,
      counted,
      billedMs: times[i]!,
    };
    unit.deliver(outcome);
    embedded.push({ unit, outcome });
  }
  return embedded;
}

function notFinite({ ask: { ask }, index }: Claim): AppError {
  const input = ask.inputs.length === 1 ? 'the input' : `input.${index}`;
  return new AppError('upstream_error', {
    message: `The model gave ${input} a vector that is not all finite numbers.`,
  });
}

/** How far a vendor's count may be from ours before it is asked whether it counts otherwise. */
const nearPermille = 100;
/** Counting is done between two turns of the event loop: some tens of milliseconds at the most. */
const maxRecountedChars = 100_000;

/**
 * What the vendor's sum is shared by: our own counts, where they come near to it or one account pays for all. Where they do
 * not, the vendor's encoding is another, to which some languages are dearer than others; who wrote in English would pay
 * for who did not. Of the encodings that are known, the one that comes nearest to the sum is taken.
 */
function weigh(units: readonly WorkUnit[], reported: number | null): readonly number[] {
  const own = units.map((unit) => unit.tokens);
  if (reported === null) return own;
  const error = Math.abs(sum(own) - reported);
  const isOfOne = units.every(({ accountId }) => accountId === units[0]!.accountId);
  if (isOfOne || error * 1_000 <= reported * nearPermille) return own;
  if (units.reduce((total, { text }) => total + text.length, 0) > maxRecountedChars) return own;
  const others = units.map(({ text }) => Math.max(1, countTokens(text, 'cl100k_base')));
  return Math.abs(sum(others) - reported) < error ? others : own;
}

const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);
