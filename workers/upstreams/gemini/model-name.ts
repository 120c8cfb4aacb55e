const COLLECTION = /^(?:models|tunedModels)\//;

/**
 * Returns the resource name of a model: `gemini-2.5-flash` becomes `models/gemini-2.5-flash`. A name that includes its
 * collection is unchanged.
 */
export function toModelName(model: string): string {
  return COLLECTION.test(model) ? model : `models/${model}`;
}

/** Returns the path of a model's method: `/v1beta/models/gemini-2.5-flash:generateContent`. */
export function toMethodPath(model: string, method: string): string {
  const name = toModelName(model);
  const slash = name.indexOf('/');
  return `/v1beta/${name.slice(0, slash)}/${encodeURIComponent(name.slice(slash + 1))}:${method}`;
}
