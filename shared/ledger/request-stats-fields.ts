import {
  modelStats,
  noModelSums,
  noTotalSums,
  totalStats,
  type ModelSums,
  type TotalSums,
} from './request-sums.ts';

/** A sum as a field of a Redis hash: `failed:MODEL` in the per-model buckets, `failed` in those of all models. */
type Field = readonly [name: string, amount: number];

/** Skips zeros, because adding them changes nothing. */
export function toModelFields(models: ReadonlyMap<string, ModelSums>): Field[] {
  return [...models].flatMap(([model, sums]) =>
    modelStats.filter((stat) => sums[stat] !== 0).map((stat): Field => [`${stat}:${model}`, sums[stat]]),
  );
}

export function toTotalFields(totals: TotalSums): Field[] {
  return totalStats.filter((stat) => totals[stat] !== 0).map((stat): Field => [stat, totals[stat]]);
}

/** @param fields alternating names and amounts, as HGETALL returns them; unknown names are skipped */
export function parseModelFields(fields: readonly string[]): Map<string, ModelSums> {
  const models = new Map<string, ModelSums>();
  for (let i = 0; i + 1 < fields.length; i += 2) {
    // The name ends at the first colon. A model's id may contain colons, too.
    const [, name = '', model = ''] = /^([^:]*):(.*)$/s.exec(fields[i]!) ?? [];
    const stat = modelStats.find((one) => one === name);
    if (stat === undefined) continue;
    models.set(model, { ...(models.get(model) ?? noModelSums), [stat]: Number(fields[i + 1]) });
  }
  return models;
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
