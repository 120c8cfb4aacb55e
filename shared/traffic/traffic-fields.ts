import {
  modelFigures,
  noModelSums,
  noTotalSums,
  totalFigures,
  type ModelSums,
  type TotalSums,
} from './traffic-sums.ts';

/** Sums as the fields of a hash of Redis: `failed:MODEL` in the buckets of the models, `failed` in those of all. */
type Field = readonly [name: string, amount: number];

/** Only what is not zero; adding the rest would change nothing. */
export function toModelFields(models: ReadonlyMap<string, ModelSums>): Field[] {
  return [...models].flatMap(([model, sums]) =>
    modelFigures
      .filter((figure) => sums[figure] !== 0)
      .map((figure): Field => [`${figure}:${model}`, sums[figure]]),
  );
}

export function toTotalFields(totals: TotalSums): Field[] {
  return totalFigures
    .filter((figure) => totals[figure] !== 0)
    .map((figure): Field => [figure, totals[figure]]);
}

/** @param fields names and amounts in turn, as HGETALL answers; what is no figure is left out */
export function parseModelFields(fields: readonly string[]): Map<string, ModelSums> {
  const models = new Map<string, ModelSums>();
  for (let i = 0; i + 1 < fields.length; i += 2) {
    // Only the first colon ends the figure's name: a model's id may hold colons as well.
    const [, name = '', model = ''] = /^([^:]*):(.*)$/s.exec(fields[i]!) ?? [];
    const figure = modelFigures.find((one) => one === name);
    if (figure === undefined) continue;
    models.set(model, { ...(models.get(model) ?? noModelSums), [figure]: Number(fields[i + 1]) });
  }
  return models;
}

/** @param fields names and amounts in turn, as HGETALL answers; what is no figure is left out */
export function parseTotalFields(fields: readonly string[]): TotalSums {
  const totals: Record<keyof TotalSums, number> = { ...noTotalSums };
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const figure = totalFigures.find((one) => one === fields[i]);
    if (figure !== undefined) totals[figure] = Number(fields[i + 1]);
  }
  return totals;
}
