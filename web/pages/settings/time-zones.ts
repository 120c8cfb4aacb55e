import type { Choice } from '../../ui/field.tsx';
import type { Language } from '../../lib/messages.ts';

/** Zones that browsers do not list, but accept. */
const furtherZones = ['UTC'];

/** Returns a part of how a zone is written, such as `GMT+3` or `Moscow Standard Time`. */
function nameZone(zone: string, language: Language, style: 'shortOffset' | 'long'): string {
  const parts = new Intl.DateTimeFormat(language, { timeZone: zone, timeZoneName: style }).formatToParts(0);
  return parts.find(({ type }) => type === 'timeZoneName')?.value ?? '';
}

/** `Europe/Moscow` as `Europe/Moscow, GMT+3` */
export const labelZone = (zone: string, language: Language): string =>
  zone === 'UTC' ? zone : `${zone.replaceAll('_', ' ')}, ${nameZone(zone, language, 'shortOffset')}`;

/**
 * Returns all time zones that the browser knows, and the given one. Their names in the language make them searchable:
 * `Europe/Moscow, GMT+3, Moscow Standard Time`.
 */
export function listZones(current: string, language: Language): readonly Choice<string>[] {
  const zones = new Set([...furtherZones, ...Intl.supportedValuesOf('timeZone'), current]);
  return [...zones].map((zone) => ({
    value: zone,
    label: zone === 'UTC' ? zone : `${labelZone(zone, language)}, ${nameZone(zone, language, 'long')}`,
  }));
}
