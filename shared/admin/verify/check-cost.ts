import type { Pricing } from '../../contract/models.ts';
import type { RequestLogDocument } from '../../ledger/ledger-store.ts';
import { unknownModel } from '../../ledger/usage-event.ts';
import { isUncharged, usageOfRow } from '../../ledger/usage-of-row.ts';
import { computeCost } from '../../catalog/cost.ts';
import { formatRub } from '../../encoding/money.ts';
import type { Difference } from './check-account.ts';

/**
 * Recomputes the cost of a settled request from its log row. Pure.
 * @param pricing the pricing at admission; null if it is not stored
 */
export function checkCost(row: RequestLogDocument, pricing: Pricing | null): Difference | null {
  // The event could not be read and is a dead letter, or the row is that of a batch, whose cost is the sum of its lines.
  if (row.priceVersion === unknownModel || row.lines !== undefined) return null;
  const common = { account: row.accountId, request_id: row._id };
  if (pricing === null) {
    const version = `${row.model} ${row.priceVersion}`;
    return { ...common, check: 'the price is stored', expected: version, found: 'none' };
  }
  const expected = row.free || isUncharged(row) ? 0n : computeCost(pricing, usageOfRow(row));
  const found = row.costNano + row.shortfallNano;
  if (found === expected) return null;
  const check = 'cost follows from price and usage';
  return { ...common, check, expected: formatRub(expected), found: formatRub(found) };
}
