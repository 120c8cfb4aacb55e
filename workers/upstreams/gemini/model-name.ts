const COLLECTION = /^(?:models|tunedModels)\//;

/** The resource name of a model: `gemini-2.5-flash` is `models/gemini-2.5-flash`, and a name with its collection stays. */
export function toModelName(model: string): string {
  return COLLECTION.test(model) ? model : `models/${model}`;
}

/** Where a method of a model is called: `/v1beta/models/gemini-2.5-flash:generateContent`. */
export function toMethodPath(model: string, method: string): string {
  const name = toModelName(model);
  const slash = name.indexOf('/');
  return `/v1beta/${name.slice(0, slash)}/${encodeURIComponent(name.slice(slash + 1))}:${method}`;
}
