const maxHttpsUrlLength = 2083;
const maxDataUriBytes = 20_000_000;
/** Some vendors take what comes here by its type, or by its bytes where that says nothing, and bill documents by their text. */
const dataUriStart = /^data:image\/[a-z0-9.+-]+(?:;[a-z0-9=.+-]+)*;base64,/i;
/** Readers of PDFs look for the beginning in 1024 bytes, whatever stands before it. */
const sniffedChars = Math.ceil(1024 / 3) * 4;
/** Some encoders break the line after 64 or 76 characters. */
const lineBreakChars = 2 * Math.ceil(sniffedChars / 64);
const base64Only = /^[a-z0-9+/]*={0,2}$/i;
/** The first bytes of PNG, JPEG, GIF, WebP, BMP, TIFF, and of HEIC and AVIF. SVG is text, and billed as such. */
const pictureStart =
  /^(?:\x89PNG\r\n.\n|\xff\xd8\xff|GIF8[79]a|RIFF[^]{4}WEBP|BM[^]{4}\0{4}|II\*\0|MM\0\*|[^]{4}ftyp(?:hei|hev|mif1|msf1|avi[fs]))/;

/** An https URL or a base64 data URI of a picture; the rest of the base64 is checked by who decodes it. */
export function isImageUrl(value: string): boolean {
  if (value.startsWith('https://')) return value.length <= maxHttpsUrlLength && URL.canParse(value);
  const start = dataUriStart.exec(value.slice(0, 200))?.[0].length;
  if (start === undefined || !startsAsPicture(value.slice(start))) return false;
  return ((value.length - start) * 3) / 4 <= maxDataUriBytes;
}

function startsAsPicture(base64: string): boolean {
  const part = base64.slice(0, sniffedChars + lineBreakChars);
  const start = part.replaceAll(/\r?\n/g, '').slice(0, sniffedChars);
  // Decoders pass over what is no base64: enough of it would hide from us what they see.
  const isSeen = start.length === sniffedChars || part.length === base64.length;
  if (!isSeen || !base64Only.test(start)) return false;
  const head = Buffer.from(start, 'base64').toString('latin1');
  return pictureStart.test(head) && !head.includes('%PDF-');
}
