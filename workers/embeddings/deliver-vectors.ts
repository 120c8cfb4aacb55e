// decision 0028
import { AppError } from '../../shared/contract/errors.ts';
import { shareCost } from '../routing/vendor-cost.ts';
import { UpstreamError, type EmbeddingResponse } from '../upstreams/upstream.ts';
import type { EmbeddedInput, BufferRef } from './embedding-task.ts';
import type { InputClaim, PendingInput } from './embedding-work.ts';
import type { CallBill } from './bill-call.ts';
import { shareExactly } from './share-exactly.ts';
import type { StoredVector } from './vector-entry.ts';

export interface DeliveredInput {
  readonly input: PendingInput;
  /** The input's vector, and the tokens billed for the input when it is requested again and served from the cache. */
  readonly toCache: StoredVector;
}

export interface Delivery {
  /** The inputs whose vectors were delivered. */
  readonly embedded: readonly DeliveredInput[];
  /** The inputs whose vector was invalid. */
  readonly broken: readonly PendingInput[];
}

/** What a call took and costs. */
export interface CallResult {
  readonly tookMs: number;
  /** Null if it is unknown. */
  readonly vendorCostNano: bigint | null;
  /** Called before the first vector is delivered, unless all are invalid. */
  readonly onValid?: () => void;
}

/**
 * Delivers the vectors of a call to its inputs. JSON cannot represent non-finite numbers, so a vector that
 * contains one is invalid. If only some vectors are invalid, their inputs are to blame, and the others are delivered. If all
 * are invalid, the upstream is to blame.
 * @throws UpstreamError if no vector is finite; nothing is delivered then
 */
export function deliverVectors(
  inputs: readonly PendingInput[],
  response: EmbeddingResponse,
  bill: CallBill,
  bufferRef: BufferRef | null,
  { tookMs, vendorCostNano, onValid }: CallResult,
): Delivery {
  const billedTimes = shareExactly(
    tookMs,
    inputs.map(({ tokens }) => tokens),
  );
  const size = response.dimensions * 4;
  const { kept } = bill;
  const broken = new Set(response.broken);
  if (broken.size === inputs.length) {
    throw new UpstreamError('unavailable', 'the upstream sent only vectors with non-finite numbers');
  }
  onValid?.();
  const embedded: DeliveredInput[] = [];
  // The inputs with a vector bear the cost of the others.
  const costs =
    vendorCostNano === null
      ? null
      : shareCost(
          vendorCostNano,
          bill.tokens.map((tokens, i) => (broken.has(i) ? 0 : tokens)),
        );
  for (const [i, input] of inputs.entries()) {
    if (broken.has(i)) continue;
    const vector = response.vectors.subarray(i * size, (i + 1) * size);
    const outcome: EmbeddedInput = {
      vector,
      bufferRef,
      dimensions: response.dimensions,
      tokens: bill.tokens[i]!,
      counted: bill.isCounted,
      billedMs: billedTimes[i]!,
      vendorCostNano: costs === null ? null : costs[i]!,
    };
    input.deliver(outcome);
    embedded.push({ input, toCache: { vector, tokens: kept.tokens[i]!, counted: kept.isCounted } });
  }
  return { embedded, broken: inputs.filter((_, i) => broken.has(i)) };
}

/** Treats an invalid vector as a rejection of the input, because the model returns the same on a retry. */
export function describeInvalidVector({ request, index }: InputClaim): AppError {
  const { position, count } = request.locate(index);
  const input = count === 1 ? 'the input' : `input.${position}`;
  const message = `The model returned a vector with non-finite numbers for ${input}.`;
  return new AppError('upstream_rejected', { message, cause: new UpstreamError('rejected', message) });
}
