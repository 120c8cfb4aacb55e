const jsonNumber = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const literals = new Map<string, unknown>([
  ['true', true],
  ['false', false],
  ['null', null],
]);

/** Returns whether a byte can be part of a number or literal. */
export const isScalarByte = (byte: number): boolean =>
  (byte >= 0x30 && byte <= 0x39) ||
  (byte >= 0x61 && byte <= 0x7a) ||
  byte === 0x2b ||
  byte === 0x2d ||
  byte === 0x2e ||
  byte === 0x45;

/** Parses a number or one of the three literals. Returns null for anything else. */
export function parseScalar(text: string): { readonly value: unknown } | null {
  if (jsonNumber.test(text)) return { value: Number(text) };
  return literals.has(text) ? { value: literals.get(text) } : null;
}

/** Decodes the text between two quotes. Returns null if an escape is invalid. */
export function parseEscapes(text: string): string | null {
  try {
    return JSON.parse(`"${text}"`) as string;
  } catch {
    // The error's position is relative to a part of one string, which is meaningless to the caller.
    return null;
  }
}

/** Sets a member the way `JSON.parse` does: `__proto__` becomes an ordinary member, not the prototype. */
export function setMember(object: Record<string, unknown>, key: string, value: unknown): void {
  if (key !== '__proto__') object[key] = value;
  else Object.defineProperty(object, key, { value, configurable: true, enumerable: true, writable: true });
}
