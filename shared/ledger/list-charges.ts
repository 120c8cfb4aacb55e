import type { ChargeUnit } from '../catalog/charge-units.ts';
import { computeCost, findCharges } from '../catalog/cost.ts';
import type { CatalogStore } from '../catalog/catalog-store.ts';
import type { Pricing } from '../contract/models.ts';
import type { RequestQuantities, RequestRates } from '../contract/request-rates.ts';
import { toRubNumber } from '../encoding/money.ts';
import type { RequestLogDocument } from './ledger-store.ts';
import type { PricedRow } from './price-store.ts';
import { lastUpstreamOf } from './usage-event.ts';
import { isUncharged, usageOfRow } from './usage-of-row.ts';

/** A part of what a request cost: rate × quantity. */
export interface PresentedCharge {
  readonly unit: ChargeUnit;
  readonly rateNano: bigint;
  readonly quantity: number;
}

/** Returns what the request was charged by; null if it was not charged, or its prices do not say it. */
export const listCharges = ({ row, pricing }: PricedRow): readonly PresentedCharge[] | null =>
  pricing === null || isUncharged(row) ? null : listParts(row, pricing);

/**
 * Returns what the vendor charges by, if the catalog still says what it did: the prices of a route of the upstream that was
 * called last give exactly the recorded cost. Null otherwise, such as after a failed call that was charged, too.
 */
export function listVendorCharges(
  row: RequestLogDocument,
  catalog: Pick<CatalogStore, 'find'>,
): readonly PresentedCharge[] | null {
  const { vendorCostNano } = row;
  if (vendorCostNano === undefined || vendorCostNano === 0n) return null;
  const name = lastUpstreamOf(row);
  const routes = catalog.find(row.model)?.routes.filter(({ upstream }) => upstream.name === name) ?? [];
  const usage = usageOfRow(row);
  const cost = routes
    .map((route) => route.cost)
    .find((one) => one !== null && computeCost(one, usage) === vendorCostNano);
  return cost === undefined || cost === null ? null : listParts(row, cost);
}

function listParts(row: RequestLogDocument, pricing: Pricing): readonly PresentedCharge[] | null {
  // The row of a batch has the sums of its lines.
  if (row.lines !== undefined) return null;
  return findCharges(pricing, usageOfRow(row)).parts.map(({ unit, priceNano, quantity }) => ({
    unit,
    rateNano: priceNano,
    quantity: unit === 'second' ? quantity / 1_000 : quantity,
  }));
}

export function presentCharges(charges: readonly PresentedCharge[] | null): {
  readonly rates: RequestRates | null;
  readonly quantities: RequestQuantities | null;
} {
  if (charges === null) return { rates: null, quantities: null };
  return {
    rates: Object.fromEntries(charges.map(({ unit, rateNano }) => [unit, toRubNumber(rateNano)])),
    quantities: Object.fromEntries(charges.map(({ unit, quantity }) => [unit, quantity])),
  };
}
