/** Origins whose pages may call the API: these, or any. */
export type CorsOrigins = '*' | ReadonlySet<string>;

/** As browsers send it for apps and extensions: `chrome-extension://…`, `capacitor://localhost`. */
const originOfOtherScheme = /^[a-z][a-z0-9+.-]*:\/\/[a-z0-9._~-]+(?::\d+)?$/i;

/**
 * Reads a list of origins, separated by commas or spaces, or `*`.
 * @returns the origins, null where there are none, and the entries that are no origins
 */
export function readCorsOrigins(text: string): { origins: CorsOrigins | null; wrong: readonly string[] } {
  const entries = text.split(/[\s,]+/).filter((entry) => entry !== '');
  if (entries.length === 1 && entries[0] === '*') return { origins: '*', wrong: [] };
  const origins = entries.map(readOrigin).filter((origin) => origin !== null);
  const wrong = entries.filter((entry) => readOrigin(entry) === null);
  return { origins: origins.length === 0 ? null : new Set(origins), wrong };
}

/** In the form that browsers send, which has no slash at the end and no default port; null for anything else. */
function readOrigin(text: string): string | null {
  // A pattern would look like a host to URL, and match nothing.
  if (text.includes('*') || !URL.canParse(text)) return null;
  const { protocol, origin, href } = new URL(text);
  const isWeb = protocol === 'http:' || protocol === 'https:';
  if (!isWeb) return originOfOtherScheme.test(text) ? text : null;
  return href === `${origin}/` ? origin : null;
}
