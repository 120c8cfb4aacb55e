const maxHttpsUrlLength = 2083;
const maxDataUriBytes = 20_000_000;
/**
 * Requires an image media type. Some vendors detect the type from the media type, or from the bytes if that is
 * inconclusive, and bill documents for their text.
 */
const dataUriStart = /^data:image\/[a-z0-9.+-]+(?:;[a-z0-9=.+-]+)*;base64,/i;
/** PDF readers look for the header within the first 1024 bytes, whatever comes before it. */
const sniffedChars = Math.ceil(1024 / 3) * 4;
/** Additional characters for line breaks: some encoders break lines after 64 or 76 characters. */
const lineBreakChars = 2 * Math.ceil(sniffedChars / 64);
const base64Only = /^[a-z0-9+/]*={0,2}$/i;
/**
 * The first bytes of PNG, JPEG, GIF, WebP, BMP, TIFF, HEIC and AVIF. SVG is excluded: vendors bill it as text.
 */
const imageStart =
  /^(?:\x89PNG\r\n.\n|\xff\xd8\xff|GIF8[79]a|RIFF[^]{4}WEBP|BM[^]{4}\0{4}|II\*\0|MM\0\*|[^]{4}ftyp(?:hei|hev|mif1|msf1|avi[fs]))/;

/** Why a value is not an image URL, in English and Russian. */
export interface ImageUrlProblem {
  readonly msg: string;
  readonly msgRu: string;
}

/**
 * Returns whether the value is an https URL or a base64 data URI of an image. The rest of the base64 is validated
 * when it is decoded.
 */
export const isImageUrl = (value: string): boolean => findImageUrlProblem(value) === null;

/** Returns why the value is not an image URL; null if it is one. */
export function findImageUrlProblem(value: string): ImageUrlProblem | null {
  if (value.startsWith('https://')) {
    if (value.length > maxHttpsUrlLength)
      return {
        msg: `this URL has ${value.length} characters`,
        msgRu: `в этом адресе символов: ${value.length}`,
      };
    return URL.canParse(value) ? null : { msg: 'this URL is not valid', msgRu: 'этот адрес некорректен' };
  }
  if (/^http:\/\//i.test(value))
    return { msg: 'this is an http URL without TLS', msgRu: 'это адрес http без TLS' };
  if (!/^data:/i.test(value))
    return {
      msg: 'this starts with neither https:// nor data:',
      msgRu: 'значение не начинается ни с https://, ни с data:',
    };
  const start = dataUriStart.exec(value.slice(0, 200))?.[0].length;
  if (start === undefined) {
    return {
      msg: 'this data URI does not start with data:image/…;base64,',
      msgRu: 'этот data URI не начинается с data:image/…;base64,',
    };
  }
  if (!startsAsImage(value.slice(start))) {
    return {
      msg: 'this data URI does not contain a base64-encoded image',
      msgRu: 'этот data URI не содержит изображение в base64',
    };
  }
  const megabytes = ((value.length - start) * 3) / 4 / 1_000_000;
  return megabytes * 1_000_000 <= maxDataUriBytes
    ? null
    : {
        msg: `this data URI has ${megabytes.toFixed(1)} MB`,
        msgRu: `в этом data URI ${megabytes.toFixed(1)} МБ`,
      };
}

function startsAsImage(base64: string): boolean {
  const part = base64.slice(0, sniffedChars + lineBreakChars);
  const start = part.replaceAll(/\r?\n/g, '').slice(0, sniffedChars);
  // Decoders skip characters that are not base64. Enough of them would push data that a decoder reads past the part
  // checked here.
  const isSufficient = start.length === sniffedChars || part.length === base64.length;
  if (!isSufficient || !base64Only.test(start)) return false;
  const head = Buffer.from(start, 'base64').toString('latin1');
  return imageStart.test(head) && !head.includes('%PDF-');
}
