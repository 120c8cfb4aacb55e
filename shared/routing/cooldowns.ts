/** What Redis stores about the cooldown of an upstream's key: when it ends (ms), a space, and why, for operators. */
export interface Cooldown {
  readonly forMs: number;
  readonly reason: string;
}

const refused = 'refused with ';

/** The reason for the cooldown of a key that the upstream refuses. */
export const refusalReason = (status: number | null, vendorCode: string | null): string =>
  `${refused}${status ?? 'an error'}${vendorCode === null ? '' : ` (${vendorCode})`}`;

/** Whether the key is on cooldown because the upstream refuses it: it is invalid, has no credit or no permission. */
export const isRefusal = ({ reason }: Cooldown): boolean => reason.startsWith(refused);

/** For how long the last refusal of a key is shown, unless a call with it succeeds. */
export const refusalNotedMs = 3_600_000;

/** The last refusal of a key with which no call has succeeded since. */
export interface Refusal {
  /** Redis's time. */
  readonly atMs: number;
  readonly reason: string;
}

/** Reads a stored refusal: when it was (ms), a space, and why. Returns null if there is none, or it is long ago. */
export function parseRefusal(text: string | null | undefined, nowMs: number): Refusal | null {
  const [, atMs, reason = ''] = /^(\d+) (.*)$/s.exec(text ?? '') ?? [];
  return atMs !== undefined && nowMs - Number(atMs) < refusalNotedMs ? { atMs: Number(atMs), reason } : null;
}

/** Reads a stored cooldown. Returns null if there is none, or it has ended. */
export function parseCooldown(text: string | null | undefined, nowMs: number): Cooldown | null {
  const [, untilMs, reason = ''] = /^(\d+) (.*)$/s.exec(text ?? '') ?? [];
  const forMs = Number(untilMs ?? 0) - nowMs;
  return forMs > 0 ? { forMs, reason } : null;
}
