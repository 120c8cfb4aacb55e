import {
  modelStats,
  noModelSums,
  noTotalSums,
  totalStats,
  type ModelSums,
  type TotalSums,
} from './request-sums.ts';
import { addTraffic, listTraffic, noTraffic, parseTraffic, type TrafficSums } from './traffic-sums.ts';

/** A sum as a field of a Redis hash: `failed:MODEL` in the per-model buckets, `failed` in those of all models. */
type Field = readonly [name: string, amount: number | bigint];

/** Skips zeros, because adding them changes nothing. */
export function toModelFields(models: ReadonlyMap<string, ModelSums>): Field[] {
  return [...models].flatMap(([model, sums]) =>
    modelStats.filter((stat) => sums[stat] !== 0).map((stat): Field => [`${stat}:${model}`, sums[stat]]),
  );
}

export const toTrafficFields = (models: ReadonlyMap<string, TrafficSums>): Field[] =>
  [...models].flatMap(([model, sums]) =>
    listTraffic(sums).map(([name, amount]): Field => [`${name}:${model}`, amount]),
  );

export function toTotalFields(totals: TotalSums): Field[] {
  return totalStats.filter((stat) => totals[stat] !== 0).map((stat): Field => [stat, totals[stat]]);
}

/** @param fields alternating names and amounts, as HGETALL returns them; unknown names are skipped */
export function parseModelFields(fields: readonly string[]): Map<string, ModelSums> {
  const models = new Map<string, ModelSums>();
  for (const { name, model, amount } of listByModel(fields)) {
    const stat = modelStats.find((one) => one === name);
    if (stat === undefined) continue;
    models.set(model, { ...(models.get(model) ?? noModelSums), [stat]: Number(amount) });
  }
  return models;
}

/** @param fields alternating names and amounts, as HGETALL returns them; unknown names are skipped */
export function parseTrafficFields(fields: readonly string[]): Map<string, TrafficSums> {
  const models = new Map<string, TrafficSums>();
  for (const { name, model, amount } of listByModel(fields)) {
    const sums = parseTraffic(name, amount);
    if (sums !== null) models.set(model, addTraffic(models.get(model) ?? noTraffic, sums));
  }
  return models;
}

function* listByModel(fields: readonly string[]) {
  for (let i = 0; i + 1 < fields.length; i += 2) {
    // The name ends at the first colon. A model's id may contain colons, too.
    const [, name, model] = /^([^:]*):(.*)$/s.exec(fields[i]!) ?? [];
    if (name !== undefined) yield { name, model: model!, amount: fields[i + 1]! };
  }
}

/** @param fields alternating names and amounts, as HGETALL returns them; unknown names are skipped */
export function parseTotalFields(fields: readonly string[]): TotalSums {
  const totals: Record<keyof TotalSums, number> = { ...noTotalSums };
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const stat = totalStats.find((one) => one === fields[i]);
    if (stat !== undefined) totals[stat] = Number(fields[i + 1]);
  }
  return totals;
}
