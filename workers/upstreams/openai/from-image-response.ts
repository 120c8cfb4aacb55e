import { type GeneratedImage, type ImageAnswer, UpstreamError } from '../upstream.ts';
import { toErrorWithin } from './from-error.ts';
import { isErrorBody } from './from-response.ts';
import { isRecord, type JsonRecord, parseRecord, readArray, readText } from './json-value.ts';

/** Pictures as bytes. More than `n` are cut, fewer are passed on; none is an error. */
export function fromImageResponse(text: string, n: number, apiKey: string | null): ImageAnswer {
  const body = parseRecord(text, 'an image answer');
  if (isErrorBody(body)) {
    throw toErrorWithin(body, apiKey);
  }
  const images = readArray(body['data'])
    .slice(0, n)
    .map((item) => toImage(isRecord(item) ? item : {}));
  if (images.length === 0) {
    throw new UpstreamError('unavailable', 'the upstream sent no images');
  }
  return { images };
}

function toImage(item: JsonRecord): GeneratedImage {
  const base64 = readText(item['b64_json']);
  if (base64 === null) {
    throw new UpstreamError(
      'unavailable',
      readText(item['url']) === null
        ? 'the upstream sent an image without data'
        : 'the upstream sent a link where base64 was asked: links of vendors are not fetched',
    );
  }
  const bytes = Buffer.from(base64.replace(/^data:image\/[a-z+]+;base64,/, ''), 'base64');
  return { bytes, contentType: sniffContentType(bytes), revisedPrompt: readText(item['revised_prompt']) };
}

/** The first bytes tell what a picture is; what a vendor says it is does not count. */
function sniffContentType(bytes: Buffer): GeneratedImage['contentType'] {
  if (bytes.subarray(0, 8).equals(Buffer.from('89504e470d0a1a0a', 'hex'))) {
    return 'image/png';
  }
  if (bytes[0] === 0xff && bytes[1] === 0xd8 && bytes[2] === 0xff) {
    return 'image/jpeg';
  }
  if (bytes.toString('latin1', 0, 4) === 'RIFF' && bytes.toString('latin1', 8, 12) === 'WEBP') {
    return 'image/webp';
  }
  throw new UpstreamError('unavailable', 'the upstream sent an image that is neither PNG, JPEG nor WebP');
}
