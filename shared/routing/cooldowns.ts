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

/** Reads a stored cooldown. Returns null if there is none, or it has ended. */
export function parseCooldown(text: string | null | undefined, nowMs: number): Cooldown | null {
  const [, untilMs, reason = ''] = /^(\d+) (.*)$/s.exec(text ?? '') ?? [];
  const forMs = Number(untilMs ?? 0) - nowMs;
  return forMs > 0 ? { forMs, reason } : null;
}
