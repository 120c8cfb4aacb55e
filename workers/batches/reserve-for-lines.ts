import { setTimeout as delay } from 'node:timers/promises';
import { retryThroughOutage } from '../../shared/platform/redis/retry-through-outage.ts';
import type { RefusalCode } from '../../shared/work/batches/batch-record.ts';
import type { FinishDeps } from '../../shared/work/settlement/finish-request.ts';
import { fitLines, type ReadyLine, type ReservedLine } from './ready-line.ts';
import { SliceLost } from './slice-results.ts';
import { reserveLines, stopBatch, type SliceAttempt } from './slice-scripts.ts';

/** How long to wait for money that other lines or requests have reserved. */
const waitMs = 4_000;
const pollMs = 500;

/** Lines with a reservation, why none may run, the models that the account may not use, or `wait`. */
type ForLines =
  | { readonly lines: readonly ReservedLine[] }
  | { readonly refusal: RefusalCode }
  | { readonly refusedModels: Set<string> }
  | 'wait';

/**
 * Reserves money for as many of the first lines as it goes. If there is none for the first one, and nothing else has
 * reserved any, the batch stops.
 * @param withdrawn aborted when lines that have not begun must not begin any more
 * @returns `wait` if other work has reserved the money
 * @throws SliceLost when another worker has the slice
 */
export async function reserveForLines(
  { redis, hotAccounts }: Pick<FinishDeps, 'redis' | 'hotAccounts'>,
  slice: SliceAttempt,
  lines: readonly ReadyLine[],
  withdrawn: AbortSignal,
): Promise<ForLines> {
  const untilMs = performance.now() + waitMs;
  let wanted = fitLines(lines, null);
  for (;;) {
    const amount = wanted.reduce((sum, { reservedNano }) => sum + reservedNano, 0n);
    const models = [...new Set(wanted.map(({ model }) => model.id))];
    const reservation = await retryThroughOutage(() => reserveLines(redis, slice, amount, models));
    switch (reservation.outcome) {
      case 'ok':
        return { lines: wanted };
      case 'gone':
        throw new SliceLost();
      case 'stopped':
        return { refusal: reservation.refusal };
      case 'refused':
        return { refusedModels: new Set(reservation.models) };
      case 'unknown':
        await retryThroughOutage(() => hotAccounts.load(slice.accountId));
        break;
      case 'short': {
        wanted = fitLines(lines, reservation.availableNano);
        if (wanted.length > 0) break;
        if (fitLines(lines.slice(0, 1), reservation.laterNano).length === 0) {
          const { isBudget } = reservation;
          const refusal = isBudget ? 'budget_exceeded' : 'insufficient_balance';
          await retryThroughOutage(() => stopBatch(redis, slice.accountId, slice.batchId, refusal));
          return { refusal };
        }
        // Other lines and requests of the account have reserved it, and will need less of it.
        if (performance.now() > untilMs || withdrawn.aborted) return 'wait';
        wanted = fitLines(lines, null);
        await delay(pollMs);
        break;
      }
      default:
        reservation satisfies never;
    }
  }
}
