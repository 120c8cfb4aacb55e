/** Returns whether a byte can be part of a number or literal. */
export const isScalarByte = (byte: number): boolean =>
  (byte >= 0x30 && byte <= 0x39) ||
  (byte >= 0x61 && byte <= 0x7a) ||
  byte === 0x2b ||
  byte === 0x2d ||
  byte === 0x2e ||
  byte === 0x45;

/** Parses a number, a literal or a string in quotes. Returns undefined if it is not valid. */
export function parseToken(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The error's position is relative to a part of the text, which is meaningless to the caller.
    return undefined;
  }
}

/** Sets a member the way `JSON.parse` does: `__proto__` becomes an ordinary member, not the prototype. */
export function setMember(object: Record<string, unknown>, key: string, value: unknown): void {
  if (key !== '__proto__') object[key] = value;
  else Object.defineProperty(object, key, { value, configurable: true, enumerable: true, writable: true });
}
