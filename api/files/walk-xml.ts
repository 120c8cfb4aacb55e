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

const attribute = /([^\s=/"']+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g;

/** Lists attributes by name without prefix. Names may repeat. */
export function* listAttributes(attributes: string): Generator<readonly [name: string, value: string]> {
  for (const [, name = '', double, single] of attributes.matchAll(attribute)) {
    yield [name.slice(name.indexOf(':') + 1), decodeReferences(double ?? single ?? '')];
  }
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
