import {
  capabilities,
  listCapabilities,
  modelName,
  modelTypes,
  type Capability,
  type DaySummary,
  type Model,
  type ModelType,
} from '../../lib/models.ts';
import { readTokenPrices } from '../../lib/prices.ts';

export const orders = ['operator', 'input', 'output', 'context', 'speed'] as const;
export type Order = (typeof orders)[number];

export interface ModelFilters {
  readonly text: string;
  readonly type: ModelType | null;
  readonly can: readonly Capability[];
  readonly order: Order;
}

export function readFilters(filters: URLSearchParams): ModelFilters {
  const can = filters.get('can')?.split(',') ?? [];
  return {
    text: filters.get('q') ?? '',
    type: modelTypes.find((type) => type === filters.get('type')) ?? null,
    can: capabilities.filter((name) => can.includes(name)),
    order: orders.find((order) => order === filters.get('sort')) ?? 'operator',
  };
}

/** The models that match all filters, in the order that was chosen. Those without a value come last. */
export function filterModels(
  models: readonly Model[],
  { text, type, can, order }: ModelFilters,
  days: ReadonlyMap<string, DaySummary>,
): Model[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = models.filter(
    (model) => (type === null || model.type === type) && hasAll(model, can) && contains(model, words),
  );
  if (order === 'operator') return found;
  const value = (model: Model): number => orderValue(model, order, days) ?? Infinity;
  return found
    .map((model) => ({ model, value: value(model) }))
    .toSorted((a, b) => (a.value === b.value ? 0 : a.value - b.value))
    .map(({ model }) => model);
}

function hasAll(model: Model, can: readonly Capability[]): boolean {
  const has = listCapabilities(model);
  return can.every((name) => has.includes(name));
}

function contains(model: Model, words: readonly string[]): boolean {
  const text = [model.id, modelName(model), model.owned_by, model.description].join(' ').toLowerCase();
  return words.every((word) => text.includes(word));
}

/** Smaller comes first. */
function orderValue(
  model: Model,
  order: Exclude<Order, 'operator'>,
  days: ReadonlyMap<string, DaySummary>,
): number | null {
  const isByTokens = model.pricing.type === 'tokens';
  switch (order) {
    case 'input':
      return isByTokens ? readTokenPrices(model.pricing).input : null;
    case 'output':
      return isByTokens && model.type !== 'embedding' ? readTokenPrices(model.pricing).output : null;
    case 'context':
      return -model.context;
    case 'speed': {
      const speed = days.get(model.id)?.speed ?? null;
      return speed === null ? null : -speed;
    }
    default:
      return order satisfies never;
  }
}
