import { randomInt } from 'node:crypto';

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
const randomChars = 24;

const pattern = /^file-[0-9a-f]{18}[A-Za-z0-9]{24}$/;

/** What the id of a file says about it. */
export interface FileTimes {
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
}

/**
 * Creates the id of a file. It contains the time at which the file expires, so that the file is gone to the millisecond
 * without anyone deleting it, and its lifetime, so that a list can continue after a file that was deleted.
 */
export function createFileId(createdAtMs: number, lifetimeSeconds: number): string {
  const expiresAt = (createdAtMs + lifetimeSeconds * 1_000).toString(16).padStart(12, '0');
  const lifetime = lifetimeSeconds.toString(16).padStart(6, '0');
  const random = Array.from({ length: randomChars }, () => alphabet[randomInt(alphabet.length)]).join('');
  return `file-${expiresAt}${lifetime}${random}`;
}

/** Returns null if the text cannot be the id of a file. */
export function parseFileId(id: string): FileTimes | null {
  if (!pattern.test(id)) return null;
  const expiresAtMs = Number.parseInt(id.slice(5, 17), 16);
  return { createdAtMs: expiresAtMs - Number.parseInt(id.slice(17, 23), 16) * 1_000, expiresAtMs };
}
