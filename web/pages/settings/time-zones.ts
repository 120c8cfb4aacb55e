import type { Choice } from '../../ui/field.tsx';
import type { Language } from '../../lib/messages.ts';

/** A zone that browsers accept, but do not list. */
const utc = 'UTC';
/** Zones that are named at once. Naming all takes a fifth of a second. */
const chunkSize = 40;

/** Returns a part of how a zone is written, such as `GMT+3` or `Moscow Standard Time`. */
function nameZone(zone: string, language: Language, style: 'shortOffset' | 'long'): string {
  const parts = new Intl.DateTimeFormat(language, { timeZone: zone, timeZoneName: style }).formatToParts();
  return parts.find(({ type }) => type === 'timeZoneName')?.value ?? '';
}

const describeZone = (zone: string, language: Language): Choice<string> => ({
  value: zone,
  label: zone === utc ? zone : labelZone(zone, language),
});

const labelZone = (zone: string, language: Language): string =>
  [zone.replaceAll('_', ' '), nameZone(zone, language, 'shortOffset'), nameZone(zone, language, 'long')].join(
    ', ',
  );

/**
 * Returns all time zones that the browser knows. Their names in the language make them searchable: `Europe/Moscow,
 * GMT+3, Moscow Standard Time`. The page stays responsive meanwhile.
 */
export async function listZones(language: Language, signal: AbortSignal): Promise<readonly Choice<string>[]> {
  const zones = [utc, ...Intl.supportedValuesOf('timeZone')];
  const choices: Choice<string>[] = [];
  for (let from = 0; from < zones.length; from += chunkSize) {
    choices.push(...zones.slice(from, from + chunkSize).map((zone) => describeZone(zone, language)));
    await new Promise((resolve) => setTimeout(resolve));
    signal.throwIfAborted();
  }
  return choices;
}

/** Adds the zone that is chosen if browsers do not list it. */
export const withZone = (
  choices: readonly Choice<string>[],
  zone: string,
  language: Language,
): readonly Choice<string>[] =>
  choices.some(({ value }) => value === zone) ? choices : [describeZone(zone, language), ...choices];
