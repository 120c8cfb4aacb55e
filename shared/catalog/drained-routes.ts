/**
 * The name under which routes are drained: all of an upstream, or those of one model.
 * @param modelId the catalog's id of the model; null for all models
 */
export const nameDrained = (upstream: string, modelId: string | null): string =>
  modelId === null ? upstream : `${upstream} ${modelId}`;

/** Whether a model's route is among the drained ones. */
export const isRouteDrained = (
  drained: ReadonlySet<string>,
  modelId: string,
  { upstream }: { readonly upstream: { readonly name: string } },
): boolean => drained.has(upstream.name) || drained.has(nameDrained(upstream.name, modelId));
