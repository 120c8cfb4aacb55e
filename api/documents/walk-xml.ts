/** Callbacks for the content of an XML text, in document order. Names are without prefixes. */
export interface XmlVisitor {
  open?(name: string, attributes: string): void;
  text?(text: string): void;
  close?(name: string): void;
}

const quote = { double: 0x22, single: 0x27 };
const [tagStart, tagEnd] = [0x3c, 0x3e];
const cdata = '<![CDATA[';
/** Sections that are not elements. Only CDATA is text. */
const sections = [
  { start: '<!--', end: '-->' },
  { start: cdata, end: ']]>' },
  { start: '<?', end: '?>' },
  { start: '<!', end: '>' },
];

/**
 * Walks well-formed XML in linear time without buffering it.
 * @throws RangeError if a tag or section does not end
 */
export function walkXml(xml: string, visitor: XmlVisitor): void {
  let at = 0;
  for (;;) {
    const start = xml.indexOf('<', at);
    if (start < 0) break;
    if (start > at) visitor.text?.(xml.slice(at, start));
    const section = sections.find((one) => xml.startsWith(one.start, start));
    if (section === undefined) {
      const end = findTagEnd(xml, start);
      visitTag(xml.slice(start + 1, end), visitor);
      at = end + 1;
    } else {
      const inner = start + section.start.length;
      const end = xml.indexOf(section.end, inner);
      if (end < 0) throw new RangeError('a section of the markup has no end');
      if (section.start === cdata) visitor.text?.(xml.slice(inner, end));
      at = end + section.end.length;
    }
  }
  if (at < xml.length) visitor.text?.(xml.slice(at));
}

/** Finds the end of a tag. Skips quoted values, which may contain the character that ends a tag. */
function findTagEnd(xml: string, start: number): number {
  let openQuote = 0;
  for (let at = start + 1; at < xml.length; at += 1) {
    const code = xml.charCodeAt(at);
    if (code === tagStart) break;
    if (openQuote !== 0) {
      if (code === openQuote) openQuote = 0;
    } else if (code === tagEnd) return at;
    else if (code === quote.double || code === quote.single) openQuote = code;
  }
  throw new RangeError('a tag of the markup has no end');
}

const tagName = /^\/?(?:[^\s:/]+:)?([^\s:/]+)/;

function visitTag(tag: string, visitor: XmlVisitor): void {
  const match = tagName.exec(tag);
  if (match === null) throw new RangeError('a tag of the markup has no name');
  const name = match[1]!;
  if (tag.startsWith('/')) visitor.close?.(name);
  else {
    visitor.open?.(name, tag.slice(match[0].length));
    if (tag.endsWith('/')) visitor.close?.(name);
  }
}

/**
 * Lists attributes by name without prefix. Names may repeat. Reads each character once: it looks for the equals signs
 * outside of values, because a search for names would read a long run of text without one again from each character.
 */
export function* listAttributes(attributes: string): Generator<readonly [name: string, value: string]> {
  let start = 0;
  for (let equals = attributes.indexOf('='); equals >= 0; equals = attributes.indexOf('=', start)) {
    const opening = skipSpace(attributes, equals + 1);
    const mark = attributes[opening];
    const end = mark === '"' || mark === "'" ? attributes.indexOf(mark, opening + 1) : -1;
    const name = findNameBefore(attributes, start, equals);
    if (end >= 0 && name !== '')
      yield [name.slice(name.indexOf(':') + 1), decodeReferences(attributes.slice(opening + 1, end))];
    start = end >= 0 ? end + 1 : equals + 1;
  }
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (at < text.length && isSpace(text, at)) at += 1;
  return at;
}

/** The name that ends before an equals sign; empty if there is none. */
function findNameBefore(text: string, from: number, equals: number): string {
  let end = equals;
  while (end > from && isSpace(text, end - 1)) end -= 1;
  let start = end;
  while (start > from && !isSpace(text, start - 1) && !noName.has(text[start - 1]!)) start -= 1;
  return text.slice(start, end);
}

const noName = new Set(['/', '"', "'"]);

function isSpace(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  if (code < 0x80) return code === 0x20 || (code >= 0x09 && code <= 0x0d);
  return /\s/.test(text[at]!);
}

export function readAttribute(attributes: string, attributeName: string): string | null {
  for (const [name, value] of listAttributes(attributes)) if (name === attributeName) return value;
  return null;
}

const reference = /&(?:#x([0-9a-f]{1,6})|#(\d{1,7})|(amp|lt|gt|quot|apos));/gi;
const named: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

function decodeReferences(value: string): string {
  if (!value.includes('&')) return value;
  return value.replaceAll(reference, (_all, hex?: string, decimal?: string, name?: string) =>
    name === undefined
      ? toCharacter(Number.parseInt(hex ?? decimal!, hex === undefined ? 10 : 16))
      : named[name.toLowerCase()]!,
  );
}

const toCharacter = (code: number): string => (code > 0x10ffff ? '' : String.fromCodePoint(code));
