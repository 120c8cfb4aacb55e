import { AppError } from '../../shared/contract/errors.ts';
import { UpstreamError, type EmbeddingAnswer } from '../upstreams/upstream.ts';
import type { Claim, EmbeddedInput, VectorHold, WorkUnit } from './embedding-work.ts';
import type { CallBill } from './bill-call.ts';
import { shareExactly } from './share-exactly.ts';
import type { StoredVector } from './vector-entry.ts';

export interface EmbeddedUnit {
  readonly unit: WorkUnit;
  /** Its vector, with what it is billed when that is kept and asked for again. */
  readonly toKeep: StoredVector;
}

export interface Delivery {
  /** The units that have their vector now. */
  readonly embedded: readonly EmbeddedUnit[];
  /** Those that were answered with what is none. */
  readonly broken: readonly WorkUnit[];
}

/**
 * A vector that is not all finite numbers is no answer, and JSON could not tell it. One of several is the fault of its
 * input, and of nobody else whose inputs went with it; where there is no other, it is the upstream's.
 * @throws UpstreamError when no vector is finite; nothing is delivered then
 */
export function deliverVectors(
  units: readonly WorkUnit[],
  answer: EmbeddingAnswer,
  bill: CallBill,
  hold: VectorHold | null,
  tookMs: number,
): Delivery {
  const times = shareExactly(
    tookMs,
    units.map(({ tokens }) => tokens),
  );
  const size = answer.dimensions * 4;
  const { kept } = bill;
  const broken = new Set(answer.broken);
  if (broken.size === units.length) {
    throw new UpstreamError('unavailable', 'the upstream sent no vector of finite numbers');
  }
  const embedded: EmbeddedUnit[] = [];
  for (const [i, unit] of units.entries()) {
    if (broken.has(i)) continue;
    const vector = answer.vectors.subarray(i * size, (i + 1) * size);
    const outcome: EmbeddedInput = {
      vector,
      hold,
      dimensions: answer.dimensions,
      tokens: bill.tokens[i]!,
      counted: bill.isCounted,
      billedMs: times[i]!,
    };
    unit.deliver(outcome);
    embedded.push({ unit, toKeep: { vector, tokens: kept.tokens[i]!, counted: kept.isCounted } });
  }
  return { embedded, broken: units.filter((_, i) => broken.has(i)) };
}

/** As good as a refusal of the input: asked again, the model answers the same. */
export function describeBroken({ ask: { ask }, index }: Claim): AppError {
  const input = ask.inputs.length === 1 ? 'the input' : `input.${index}`;
  const message = `The model gave ${input} a vector that is not all finite numbers.`;
  return new AppError('upstream_rejected', { message, cause: new UpstreamError('rejected', message) });
}
