import {
  modelStats,
  noModelSums,
  noTotalSums,
  totalStats,
  type ModelSums,
  type TotalSums,
} from './request-sums.ts';
import {
  addTrafficText,
  isTrafficName,
  listTraffic,
  ModelTraffic,
  type TrafficSums,
} from './traffic-sums.ts';

/** A sum as a field of a Redis hash: `failed:MODEL` in the per-model buckets, `failed` in those of all models. */
export type Field = readonly [name: string, amount: number | bigint];

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

const modelStatNames: ReadonlySet<string> = new Set(modelStats);

/** @param fields alternating names and amounts, as scripts return them; unknown names are skipped */
export function parseModelFields(fields: readonly string[]): Map<string, ModelSums> {
  const models = new Map<string, Record<keyof ModelSums, number>>();
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const { name, model } = splitField(fields[i]!);
    if (!modelStatNames.has(name)) continue;
    const known = models.get(model) ?? { ...noModelSums };
    known[name as keyof ModelSums] = Number(fields[i + 1]);
    models.set(model, known);
  }
  return models;
}

/** @param fields amounts by name; unknown names are skipped */
export function parseTrafficFields(
  fields: Readonly<Record<string, string>>,
): ReadonlyMap<string, TrafficSums> {
  const traffic = new ModelTraffic();
  for (const field in fields) {
    const { name, model } = splitField(field);
    if (isTrafficName(name)) addTrafficText(traffic.of(model), name, fields[field]!);
  }
  return traffic.models;
}

/** The name ends at the first colon. A model's id may contain colons, too. */
function splitField(field: string): { readonly name: string; readonly model: string } {
  const end = field.indexOf(':');
  return end === -1 ? { name: '', model: '' } : { name: field.slice(0, end), model: field.slice(end + 1) };
}

/** @param fields alternating names and amounts, as scripts return them; unknown names are skipped */
export function parseTotalFields(fields: readonly string[]): TotalSums {
  const totals: Record<keyof TotalSums, number> = { ...noTotalSums };
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const stat = totalStats.find((one) => one === fields[i]);
    if (stat !== undefined) totals[stat] = Number(fields[i + 1]);
  }
  return totals;
}
