/** Extracts the text of XML and HTML in office documents and books. */

const cdata = { start: '<![CDATA[', end: ']]>' };
/** A custom entity can stand for text of any length. Office documents and books do not declare any. */
const entityDeclaration = /<!ENTITY\b/i;

/** Whether the bytes start like markup, in any encoding that XML is read in. */
export function isMarkup(bytes: Buffer): boolean {
  const head = decodeText(bytes.subarray(0, 1024));
  return head.trimStart().startsWith('<');
}

/**
 * Detects the encoding from the byte order mark or from a zero byte next to the first character; otherwise assumes
 * UTF-8.
 */
export function decodeText(bytes: Buffer): string {
  const [first, second] = bytes;
  const isLittleEndian = (first === 0xff && second === 0xfe) || (first !== 0 && second === 0);
  const isBigEndian = (first === 0xfe && second === 0xff) || (first === 0 && second !== 0);
  const even = bytes.subarray(0, bytes.length & ~1);
  const text = isBigEndian
    ? Buffer.from(even).swap16().toString('utf16le')
    : isLittleEndian
      ? even.toString('utf16le')
      : bytes.toString('utf8');
  return text.startsWith('\ufeff') ? text.slice(1) : text;
}

/** Returns the text without tags; null if it declares entities. */
export function readMarkup(text: string): string | null {
  if (entityDeclaration.test(text)) return null;
  const words: string[] = [];
  let at = 0;
  for (;;) {
    const start = text.indexOf(cdata.start, at);
    words.push(removeTags(text.slice(at, start < 0 ? text.length : start)));
    if (start < 0) break;
    // Inside CDATA, tags are text.
    const end = text.indexOf(cdata.end, start);
    const content = text.slice(start + cdata.start.length, end < 0 ? text.length : end);
    words.push(content);
    if (end < 0) break;
    at = end + cdata.end.length;
  }
  return words.filter((piece) => piece.trim() !== '').join(' ');
}

/** A character that follows the `<` of a tag, comment or declaration. Before any other, `<` is part of the text. */
const tagStart = /^[A-Za-z_:/!?]/;

/** Runs in linear time, even if tags are opened and never closed. */
function removeTags(text: string): string {
  const words = text
    .split('<')
    .map((piece, i) => (i > 0 && tagStart.test(piece) ? piece.slice(piece.indexOf('>') + 1) : piece));
  return words.filter((piece) => piece.trim() !== '').join(' ');
}
