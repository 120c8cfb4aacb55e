import type { Pricing } from '../../lib/models.ts';
import { listPrices, listTokenLines, readTokenPrices, type PriceLine } from '../../lib/prices.ts';

/** What a vendor charges for something, and what customers pay for it. Null if only the other one is known. */
export interface PricePair {
  readonly text: PriceLine['text'];
  readonly vendor: number | null;
  readonly customer: number | null;
}

/** One price for all tokens is taken apart, so that it stands beside separate ones. */
function listSeparate(pricing: Pricing): PriceLine[] {
  const lines = listPrices(pricing);
  if (lines[0]?.text !== 'priceAnyToken') return lines;
  const { input, output } = readTokenPrices(pricing);
  return listTokenLines({ ...pricing, prompt: input, completion: output });
}

/** @param cost of the vendor; null if the catalog does not say */
export function pairPrices(cost: Pricing | null, pricing: Pricing): PricePair[] {
  const vendor = new Map((cost === null ? [] : listSeparate(cost)).map((line) => [line.text, line.roubles]));
  const customer = new Map(listSeparate(pricing).map((line) => [line.text, line.roubles]));
  return [...new Set([...customer.keys(), ...vendor.keys()])].map((text) => ({
    text,
    vendor: vendor.get(text) ?? null,
    customer: customer.get(text) ?? null,
  }));
}

/** The share of what customers pay that is left; null if it is not known. */
export const marginOf = ({ vendor, customer }: PricePair): number | null =>
  vendor === null || customer === null || customer === 0 ? null : (customer - vendor) / customer;
