import { timeZoneNames } from './time-zone-names.ts';

/** All names, including aliases. */
export const timeZones: readonly string[] = Object.entries(timeZoneNames).flatMap(([area, names]) =>
  names
    .trim()
    .split(/\s+/)
    .map((name) => (area === '' ? name : `${area}/${name}`)),
);

const namesByLowerCase = new Map(timeZones.map((name) => [name.toLowerCase(), name]));

/**
 * Returns a time zone's name in IANA's spelling. Aliases such as `Europe/Kiev` are accepted and not replaced. Returns
 * null for anything that is not an IANA name, including offsets such as `+03:00`.
 *
 * The names come from a table because versions of Node.js differ in which aliases `Intl` replaces and whether it
 * accepts offsets.
 */
export function normalizeTimeZone(text: string): string | null {
  return namesByLowerCase.get(text.trim().toLowerCase()) ?? null;
}
