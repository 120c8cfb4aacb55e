import { createImageUsage } from '../contract/image-usage.ts';
import type { ImageResultHeader } from '../work/replies/result.ts';
import { toRubNumber } from '../encoding/money.ts';
import type { ChunkedBody } from './chunked-body.ts';

/** Bytes encoded at a time. A multiple of three, because three bytes become four characters. */
const bytesPerChunk = 192 * 1024;

const base64Length = (bytes: number): number => Math.ceil(bytes / 3) * 4;

type Part = { readonly text: Buffer } | { readonly image: Buffer };

/**
 * Serializes an image response to JSON as its client reads it. A single string would be a second copy of the response
 * in memory. JSON.stringify would also check every character, although Base64 needs no escaping, which takes ten times
 * the work for a 3 MB image.
 * @param linkOf returns the URL of a stored file
 */
export function presentImages(
  requestId: string,
  header: ImageResultHeader,
  bytes: Buffer,
  linkOf: (objectKey: string) => string,
): ChunkedBody {
  const parts = listParts(requestId, header, bytes, linkOf);
  let index = 0;
  let at = 0;
  return {
    maxChunkBytes: Math.max(
      base64Length(bytesPerChunk),
      ...parts.map((part) => ('text' in part ? part.text.length : 0)),
    ),
    byteLength: parts.reduce(
      (sum, part) => sum + ('text' in part ? part.text.length : base64Length(part.image.length)),
      0,
    ),
    write(target) {
      const part = parts[index];
      if (part === undefined) return 0;
      if ('text' in part) {
        index += 1;
        return part.text.copy(target);
      }
      const piece = part.image.subarray(at, at + bytesPerChunk);
      at += piece.length;
      if (at === part.image.length) {
        index += 1;
        at = 0;
      }
      return target.write(piece.toString('base64'), 0, 'latin1');
    },
  };
}

/** Splits the response into non-empty parts. */
function listParts(
  requestId: string,
  header: ImageResultHeader,
  bytes: Buffer,
  linkOf: (objectKey: string) => string,
): Part[] {
  const parts: Part[] = [];
  let text = `${JSON.stringify({ id: requestId, created: header.created }).slice(0, -1)},"data":[`;
  let at = 0;
  for (const [i, { revisedPrompt, objectKey, byteLength }] of header.images.entries()) {
    const comma = i === 0 ? '' : ',';
    text += `${comma}{"revised_prompt":${JSON.stringify(revisedPrompt)},"b64_json":`;
    if (objectKey !== null) {
      text += `null,"url":${JSON.stringify(linkOf(objectKey))}}`;
      continue;
    }
    const image = bytes.subarray(at, at + byteLength);
    at += byteLength;
    parts.push({ text: Buffer.from(`${text}"`) });
    if (image.length > 0) parts.push({ image });
    text = '","url":null}';
  }
  const usage = createImageUsage(header.tokens ?? {}, {
    total_time: header.durationMs / 1_000,
    cost_request: toRubNumber(BigInt(header.costNano)),
    free_request: header.free,
  });
  parts.push({ text: Buffer.from(`${text}],"usage":${JSON.stringify(usage)}}`) });
  return parts;
}
