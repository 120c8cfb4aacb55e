import {
  modelStats,
  noModelSums,
  noTotalSums,
  totalStats,
  type ModelSums,
  type TotalSums,
} from './traffic-sums.ts';

/** Sums as fields of a Redis hash: `failed:MODEL` in the per-model buckets, `failed` in those of all models. */
type Field = readonly [name: string, amount: number];

/** Leaves out zeros, because adding them changes nothing. */
export function toModelFields(models: ReadonlyMap<string, ModelSums>): Field[] {
  return [...models].flatMap(([model, sums]) =>
    modelStats
      .filter((figure) => sums[figure] !== 0)
      .map((figure): Field => [`${figure}:${model}`, sums[figure]]),
  );
}

export function toTotalFields(totals: TotalSums): Field[] {
  return totalStats.filter((figure) => totals[figure] !== 0).map((figure): Field => [figure, totals[figure]]);
}

/** @param fields alternating names and amounts, as HGETALL returns them; unknown names are skipped */
export function parseModelFields(fields: readonly string[]): Map<string, ModelSums> {
  const models = new Map<string, ModelSums>();
  for (let i = 0; i + 1 < fields.length; i += 2) {
    // The name ends at the first colon. A model's id may contain colons, too.
    const [, name = '', model = ''] = /^([^:]*):(.*)$/s.exec(fields[i]!) ?? [];
    const figure = modelStats.find((one) => one === name);
    if (figure === undefined) continue;
    models.set(model, { ...(models.get(model) ?? noModelSums), [figure]: Number(fields[i + 1]) });
  }
  return models;
}

/** @param fields alternating names and amounts, as HGETALL returns them; unknown names are skipped */
export function parseTotalFields(fields: readonly string[]): TotalSums {
  const totals: Record<keyof TotalSums, number> = { ...noTotalSums };
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const figure = totalStats.find((one) => one === fields[i]);
    if (figure !== undefined) totals[figure] = Number(fields[i + 1]);
  }
  return totals;
}
