import type { ImageResultHeader } from '../../shared/reply/result.ts';
import { toRubNumber } from '../../shared/pricing/money.ts';

/**
 * The JSON of an image answer, as bytes. Base64 needs no escaping, and JSON.stringify would look at every character of
 * it: ten times the work for an image of 3 MB.
 * @param linkOf the address of a kept file
 */
export function presentImages(
  requestId: string,
  header: ImageResultHeader,
  bytes: Buffer,
  linkOf: (objectKey: string) => string,
): Buffer {
  const head = JSON.stringify({ id: requestId, created: header.created }).slice(0, -1);
  const pieces = [Buffer.from(`${head},"data":[`)];
  let at = 0;
  for (const [i, { revisedPrompt, objectKey, byteLength }] of header.images.entries()) {
    const comma = i === 0 ? '' : ',';
    const start = `${comma}{"revised_prompt":${JSON.stringify(revisedPrompt)},"b64_json":`;
    if (objectKey !== null) {
      pieces.push(Buffer.from(`${start}null,"url":${JSON.stringify(linkOf(objectKey))}}`));
      continue;
    }
    const image = bytes.subarray(at, at + byteLength);
    at += byteLength;
    pieces.push(Buffer.from(`${start}"`), Buffer.from(image.toString('base64'), 'latin1'));
    pieces.push(Buffer.from('","url":null}'));
  }
  const usage = {
    total_time: header.durationMs / 1_000,
    cost_request: toRubNumber(BigInt(header.costNano)),
    free_request: header.free,
  };
  pieces.push(Buffer.from(`],"usage":${JSON.stringify(usage)}}`));
  return Buffer.concat(pieces);
}
