import { S3Error } from './errors.ts';

const s3Namespace = 'http://s3.amazonaws.com/doc/2006-03-01/';

export interface XmlElement {
  name: string;
  children: XmlElement[];
  /** The element's own text, with entities resolved. White space is preserved, because a key may start with a space. */
  text: string;
}

const maxDepth = 16;
const namedEntities: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" };

// One alternative per construct. A DOCTYPE matches none of them, so entity bombs cannot be declared.
const tokenPattern =
  /<\?[^]*?\?>|<!--[^]*?-->|<!\[CDATA\[([^]*?)\]\]>|<\/([A-Za-z_][\w.:-]*)\s*>|<([A-Za-z_][\w.:-]*)((?:\s+[A-Za-z_][\w.:-]*\s*=\s*(?:"[^"<]*"|'[^'<]*'))*)\s*(\/?)>|([^<]+)/y;

/** Escapes text for an element. Control characters become references, as S3 itself writes them. */
export function escapeXml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll(/\p{Cc}/gu, (character) => `&#x${character.codePointAt(0)?.toString(16) ?? ''};`);
}

/** Renders one element from already rendered children. */
export function renderElement(name: string, ...content: string[]): string {
  return `<${name}>${content.join('')}</${name}>`;
}

export function renderText(name: string, text: string | number | boolean): string {
  return renderElement(name, escapeXml(String(text)));
}

export const xmlDeclaration = '<?xml version="1.0" encoding="UTF-8"?>';

/** Renders a document's root element, without the declaration. */
export function renderRoot(name: string, ...content: string[]): string {
  return `<${name} xmlns="${s3Namespace}">${content.join('')}</${name}>`;
}

export function renderDocument(name: string, ...content: string[]): string {
  return `${xmlDeclaration}\n${renderRoot(name, ...content)}`;
}

/**
 * Parses the subset of XML that S3 clients send: elements, text, character references, CDATA and comments. Attributes
 * are skipped (only namespaces occur). Document types are rejected.
 */
export function parseXml(bytes: Uint8Array): XmlElement {
  const source = decodeUtf8(bytes).replaceAll(/\r\n?/g, '\n');
  const document: XmlElement = { name: '', children: [], text: '' };
  const open: XmlElement[] = [document];
  tokenPattern.lastIndex = 0;
  while (tokenPattern.lastIndex < source.length) {
    const token = tokenPattern.exec(source);
    const parent = open.at(-1);
    if (token === null || parent === undefined) throw new S3Error('MalformedXML');
    const [, literal, closed, opened, , selfClosed, text] = token;
    if (closed !== undefined) {
      if (open.length === 1 || parent.name !== removePrefix(closed)) throw new S3Error('MalformedXML');
      open.pop();
    } else if (opened !== undefined) {
      const element: XmlElement = { name: removePrefix(opened), children: [], text: '' };
      parent.children.push(element);
      if (selfClosed !== '/') open.push(element);
      if (open.length > maxDepth) throw new S3Error('MalformedXML');
    } else {
      parent.text += literal ?? resolveEntities(text ?? '');
    }
  }
  const [root] = document.children;
  if (open.length !== 1 || root === undefined || document.children.length !== 1) {
    throw new S3Error('MalformedXML');
  }
  if (document.text.trim() !== '') throw new S3Error('MalformedXML');
  return root;
}

export function findChild(element: XmlElement, name: string): XmlElement | undefined {
  return element.children.find((child) => child.name === name);
}

function removePrefix(name: string): string {
  return name.slice(name.indexOf(':') + 1);
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    throw new S3Error('MalformedXML', { cause: error });
  }
}

function resolveEntities(text: string): string {
  return text.replaceAll(/&(?:#x([\da-fA-F]{1,6})|#(\d{1,7})|(\w+));|&/g, (_, hex, decimal, name) => {
    if (typeof name === 'string') {
      const value = Object.hasOwn(namedEntities, name) ? namedEntities[name] : undefined;
      if (value === undefined) throw new S3Error('MalformedXML');
      return value;
    }
    const codePoint =
      typeof hex === 'string' ? Number.parseInt(hex, 16) : Number.parseInt(String(decimal), 10);
    // A bare ampersand results in NaN here. Surrogates and values beyond Unicode are not characters, either.
    const isCharacter =
      codePoint > 0 && codePoint <= 0x10_ff_ff && (codePoint < 0xd8_00 || codePoint > 0xdf_ff);
    if (!isCharacter) throw new S3Error('MalformedXML');
    return String.fromCodePoint(codePoint);
  });
}
