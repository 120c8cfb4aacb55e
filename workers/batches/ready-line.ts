import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import type { Estimate } from '../../shared/money/estimate.ts';
import type { PreparedChatJob } from '../../shared/preparing/chat/prepare-chat.ts';
import type { PreparedInputs } from '../../shared/preparing/embeddings/prepare-embedding.ts';
import type { CheckedImageRequest } from '../../shared/preparing/images/check-image-request.ts';
import { maxReservationMultiple } from '../../shared/money/reservation-store.ts';
import type { LineId } from './result-lines.ts';

/** What a line asks for. */
export type LineWork =
  | { readonly kind: 'embedding'; readonly job: PreparedInputs; readonly format: 'float' | 'base64' }
  | { readonly kind: 'chat'; readonly job: PreparedChatJob }
  | { readonly kind: 'image'; readonly job: CheckedImageRequest };

/** A valid line, for which money can be reserved. */
export interface ReadyLine extends LineId {
  readonly index: number;
  /** With the prices of the batch. */
  readonly model: CatalogModel;
  readonly estimate: Estimate;
  readonly work: LineWork;
}

/** Which line it is, in its slice and in the files. */
export type LineNames = Pick<ReadyLine, 'index' | 'id' | 'customId'>;

/** A line for which money is reserved. */
export interface ReservedLine extends ReadyLine {
  /** Completion tokens that were reserved, for all choices together. */
  readonly units: number;
  readonly reservedNano: bigint;
}

/** What must be reserved for a line with this many completion tokens. */
const costOf = ({ estimate }: ReadyLine, units: number): bigint =>
  estimate.fixedNano + estimate.nanoPerUnit * BigInt(units);

/** The most that a line is charged, as for a single request: see `admission.lua`. */
export function findMaxCharge({ estimate, units, reservedNano }: ReservedLine): bigint {
  const multiple = BigInt(maxReservationMultiple);
  const isShare = estimate.sharePermille < 1_000;
  return multiple * reservedNano - (isShare ? estimate.nanoPerUnit * BigInt(units) * (multiple - 1n) : 0n);
}

/** Completion tokens that a line without a limit of its own gets at least, if lines could run one after the other. */
const comfortableUnits = 4_096;

/**
 * Chooses how many of the first lines can run with this money, and the completion tokens of each. Lines that set no limit
 * share what is left, up to what a single request would reserve.
 * @param availableNano null if there is enough for all
 * @returns the lines that can run; none if there is not enough for the first one
 */
export function fitLines(lines: readonly ReadyLine[], availableNano: bigint | null): ReservedLine[] {
  const reserve = (line: ReadyLine, units: number): ReservedLine => ({
    index: line.index,
    id: line.id,
    customId: line.customId,
    model: line.model,
    estimate: line.estimate,
    work: line.work,
    units,
    reservedNano: costOf(line, units),
  });
  if (availableNano === null) return lines.map((line) => reserve(line, line.estimate.requestedUnits));
  for (const floor of [comfortableUnits, 0]) {
    const least = (line: ReadyLine): number =>
      Math.min(line.estimate.requestedUnits, Math.max(line.estimate.minUnits, floor));
    let sum = 0n;
    let count = 0;
    for (const line of lines) {
      const next = sum + costOf(line, least(line));
      if (next > availableNano) break;
      sum = next;
      count += 1;
    }
    if (count === 0) continue;
    const fitting = lines.slice(0, count);
    const elastic = fitting.filter((line) => line.estimate.requestedUnits > least(line)).length;
    const extraNano = elastic === 0 ? 0n : (availableNano - sum) / BigInt(elastic);
    return fitting.map((line) => {
      const { nanoPerUnit, requestedUnits } = line.estimate;
      const extra = nanoPerUnit === 0n ? requestedUnits : Number(extraNano / nanoPerUnit);
      return reserve(line, Math.min(requestedUnits, least(line) + extra));
    });
  }
  return [];
}
