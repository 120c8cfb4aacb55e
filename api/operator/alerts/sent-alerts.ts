import { conditionNames } from '../../../shared/contract/condition-names.ts';

/** What operators were last told about a condition. Times are Unix times in milliseconds. */
export interface SentRecord {
  /** Whether they were told that it began, and not yet that it ended. */
  readonly isOn: boolean;
  /** When the condition began of which they were told last. */
  readonly sinceMs: number;
  /** When the last alert of its beginning and of its end was sent; 0 if none was. */
  readonly beganAtMs: number;
  readonly endedAtMs: number;
}

export const neverSent: SentRecord = { isOn: false, sinceMs: 0, beganAtMs: 0, endedAtMs: 0 };

/** By the id of the alert. */
export type SentAlerts = ReadonlyMap<string, SentRecord>;

/** How it is stored: `on since began ended`. */
export const formatRecord = ({ isOn, sinceMs, beganAtMs, endedAtMs }: SentRecord): string =>
  [isOn ? 'on' : 'off', ...[sinceMs, beganAtMs, endedAtMs].map(Math.round)].join(' ');

/** Reads stored records. Ignores conditions and formats of other releases. */
export function parseSent(fields: readonly string[]): Map<string, SentRecord> {
  const sent = new Map<string, SentRecord>();
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const id = fields[i]!;
    const name = conditionNames.find((one) => id === one || id.startsWith(`${one} `));
    const [, state, since, began, ended] = /^(on|off) (\d+) (\d+) (\d+)$/.exec(fields[i + 1]!) ?? [];
    if (name === undefined || state === undefined) continue;
    const record = { sinceMs: Number(since), beganAtMs: Number(began), endedAtMs: Number(ended) };
    sent.set(id, { isOn: state === 'on', ...record });
  }
  return sent;
}

/**
 * Which alert is due. At most one of each kind is sent in an interval, so what begins again soon is told when the interval
 * is over, if it still lasts by then; if it has ended, neither is told.
 * @param isOn whether the condition is on; null if unknown
 */
export function findDue(
  isOn: boolean | null,
  sent: SentRecord,
  nowMs: number,
  intervalMs: number,
): 'begin' | 'end' | null {
  // A time in the future comes from a clock that was wrong.
  const isRecent = (atMs: number): boolean => atMs <= nowMs && nowMs - atMs < intervalMs;
  if (isOn === true && !sent.isOn) return isRecent(sent.beganAtMs) ? null : 'begin';
  if (isOn === false && sent.isOn) return isRecent(sent.endedAtMs) ? null : 'end';
  return null;
}
