import type { ImageResultHeader } from '../../shared/reply/result.ts';
import { toRubNumber } from '../../shared/pricing/money.ts';

/** The body of an image answer. @param linkOf the address of a kept file */
export function presentImages(
  requestId: string,
  header: ImageResultHeader,
  bytes: Buffer,
  linkOf: (objectKey: string) => string,
): object {
  let at = 0;
  const data = header.images.map(({ revisedPrompt, objectKey, byteLength }) => {
    if (objectKey !== null) return { revised_prompt: revisedPrompt, b64_json: null, url: linkOf(objectKey) };
    const image = bytes.subarray(at, at + byteLength);
    at += byteLength;
    return { revised_prompt: revisedPrompt, b64_json: image.toString('base64'), url: null };
  });
  return {
    id: requestId,
    created: header.created,
    data,
    usage: {
      total_time: header.durationMs / 1_000,
      cost_request: toRubNumber(BigInt(header.costNano)),
      free_request: header.free,
    },
  };
}
