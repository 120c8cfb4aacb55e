import { timeZoneNames } from './time-zone-names.ts';

/** All names, aliases included. */
export const timeZones: readonly string[] = Object.entries(timeZoneNames).flatMap(([area, names]) =>
  names
    .trim()
    .split(/\s+/)
    .map((name) => (area === '' ? name : `${area}/${name}`)),
);

const namesByLowerCase = new Map(timeZones.map((name) => [name.toLowerCase(), name]));

/**
 * A time zone as IANA writes its name, aliases such as `Europe/Kiev` included and kept as they are. Null where IANA has no
 * such name, which includes offsets such as `+03:00`.
 *
 * The names come from a table, because `Intl` differs from one Node.js to the next: which name of a zone it calls the right
 * one, and whether it takes offsets.
 */
export function normalizeTimeZone(text: string): string | null {
  return namesByLowerCase.get(text.trim().toLowerCase()) ?? null;
}
