/** Origins whose pages may call the API. `*` means any. */
export type CorsOrigins = '*' | ReadonlySet<string>;

/** The form browsers send for apps and extensions: `chrome-extension://…`, `capacitor://localhost`. */
const originOfOtherScheme = /^[a-z][a-z0-9+.-]*:\/\/[a-z0-9._~-]+(?::\d+)?$/i;

/**
 * Reads a list of origins, separated by commas or spaces, or `*`.
 * @returns the origins, or null if there are none, and the entries that are not origins
 */
export function readCorsOrigins(text: string): { origins: CorsOrigins | null; wrong: readonly string[] } {
  const entries = text.split(/[\s,]+/).filter((entry) => entry !== '');
  if (entries.length === 1 && entries[0] === '*') return { origins: '*', wrong: [] };
  const origins = entries.map(readOrigin).filter((origin) => origin !== null);
  const wrong = entries.filter((entry) => readOrigin(entry) === null);
  return { origins: origins.length === 0 ? null : new Set(origins), wrong };
}

/**
 * Returns the origin in the form that browsers send, without a trailing slash or default port. Null if it is not an
 * origin.
 */
function readOrigin(text: string): string | null {
  // `URL` would parse a pattern as a host that never matches.
  if (text.includes('*') || !URL.canParse(text)) return null;
  const { protocol, origin, href } = new URL(text);
  const isWeb = protocol === 'http:' || protocol === 'https:';
  if (!isWeb) return originOfOtherScheme.test(text) ? text : null;
  return href === `${origin}/` ? origin : null;
}
