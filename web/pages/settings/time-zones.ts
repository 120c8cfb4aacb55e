import type { Language } from '../../lib/messages.ts';
import type { SearchedChoice } from '../../ui/combobox.tsx';
import { findCities } from './cities.ts';

/** A zone that browsers accept, but do not list. */
const utc = 'UTC';
/** Zones that are named at once. Naming all takes a fifth of a second. */
const chunkSize = 40;

/** Returns a part of how a zone is written, such as `GMT+3` or `Moscow Standard Time`. */
function nameZone(zone: string, language: Language, style: 'shortOffset' | 'long'): string {
  const parts = new Intl.DateTimeFormat(language, { timeZone: zone, timeZoneName: style }).formatToParts();
  return parts.find(({ type }) => type === 'timeZoneName')?.value ?? '';
}

function describeZone(zone: string, language: Language): SearchedChoice {
  if (zone === utc) return { value: zone, label: zone };
  const cities = findCities(zone, language);
  const id = zone.replaceAll('_', ' ');
  const offset = nameZone(zone, language, 'shortOffset');
  const long = nameZone(zone, language, 'long');
  if (cities === null) return { value: zone, label: [id, offset, long].join(', ') };
  return { value: zone, label: `${cities.main}, ${offset}, ${id}`, terms: [...cities.names, long] };
}

/**
 * Returns all time zones that the browser knows. Their names in the language and their cities make them searchable:
 * `Moscow, GMT+3, Europe/Moscow`. The page stays responsive meanwhile.
 */
export async function listZones(language: Language, signal: AbortSignal): Promise<readonly SearchedChoice[]> {
  const zones = [utc, ...Intl.supportedValuesOf('timeZone')];
  const choices: SearchedChoice[] = [];
  for (let from = 0; from < zones.length; from += chunkSize) {
    choices.push(...zones.slice(from, from + chunkSize).map((zone) => describeZone(zone, language)));
    await new Promise((resolve) => setTimeout(resolve));
    signal.throwIfAborted();
  }
  return choices;
}

/** Adds the zone that is chosen if browsers do not list it. */
export const withZone = (
  choices: readonly SearchedChoice[],
  zone: string,
  language: Language,
): readonly SearchedChoice[] =>
  choices.some(({ value }) => value === zone) ? choices : [describeZone(zone, language), ...choices];
