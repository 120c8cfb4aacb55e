const jsonNumber = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const literals = new Map<string, unknown>([
  ['true', true],
  ['false', false],
  ['null', null],
]);

/** A byte that numbers and literals are made of. */
export const isScalarByte = (byte: number): boolean =>
  (byte >= 0x30 && byte <= 0x39) ||
  (byte >= 0x61 && byte <= 0x7a) ||
  byte === 0x2b ||
  byte === 0x2d ||
  byte === 0x2e ||
  byte === 0x45;

/** A number, or one of the three literals; null where the text is neither. */
export function parseScalar(text: string): { readonly value: unknown } | null {
  if (jsonNumber.test(text)) return { value: Number(text) };
  return literals.has(text) ? { value: literals.get(text) } : null;
}

/** The text between two quotes; null where an escape in it is none. */
export function parseEscapes(text: string): string | null {
  try {
    return JSON.parse(`"${text}"`) as string;
  } catch {
    // The position in a part of one string would tell the caller nothing.
    return null;
  }
}

/** As `JSON.parse` does: a member of this name is a member, and no prototype. */
export function setMember(object: Record<string, unknown>, key: string, value: unknown): void {
  if (key !== '__proto__') object[key] = value;
  else Object.defineProperty(object, key, { value, configurable: true, enumerable: true, writable: true });
}
