import { decodeImage, readImageType } from '../image-bytes.ts';
import { dropEmptyCounts } from '../image-usage.ts';
import {
  type GeneratedImage,
  type ImageResponse,
  noUpstreamUsage,
  UpstreamError,
  type UpstreamUsage,
} from '../upstream.ts';
import { toEmbeddedError } from './from-error.ts';
import { isErrorBody } from './from-response.ts';
import { isRecord, type JsonRecord } from '../../../shared/encoding/json-record.ts';
import { readArray, readCount, readText } from '../json-value.ts';

/**
 * Returns the images as bytes. Drops images beyond `n`. If some images are missing or unreadable, the others are still
 * returned, because the vendor bills them.
 * @throws UpstreamError if none can be read
 */
export async function fromImageResponse(
  body: JsonRecord,
  n: number,
  apiKey: string | null,
  accountId: string,
): Promise<ImageResponse> {
  if (isErrorBody(body)) {
    throw toEmbeddedError(body, apiKey);
  }
  const images: GeneratedImage[] = [];
  let firstError: UpstreamError | undefined;
  for (const item of readArray(body['data']).slice(0, n)) {
    try {
      images.push(await toImage(isRecord(item) ? item : {}, accountId));
    } catch (error) {
      if (!(error instanceof UpstreamError)) throw error;
      firstError ??= error;
    }
  }
  if (images.length === 0) {
    throw firstError ?? new UpstreamError('unavailable', 'the upstream sent no images');
  }
  const usage = readImageUsage(body, images.length);
  return { images, calls: 1, usage, ...(firstError === undefined ? {} : { shortfallReason: firstError }) };
}

/** @throws UpstreamError if the item does not contain a base64 image */
export async function toImage(item: JsonRecord, accountId: string): Promise<GeneratedImage> {
  const base64 = readText(item['b64_json']);
  if (base64 === null) {
    throw new UpstreamError(
      'unavailable',
      readText(item['url']) === null
        ? 'the upstream sent an image without data'
        : 'the upstream sent a URL instead of base64; URLs from vendors are not fetched',
    );
  }
  const bytes = await decodeImage(base64.replace(/^data:image\/[a-z+]+;base64,/, ''), accountId);
  return { bytes, contentType: readImageType(bytes), revisedPrompt: readText(item['revised_prompt']) };
}

/**
 * Reads the usage of image responses. The token counts of the GPT image models have other names than those of chats;
 * the prompt's count covers text and input images together (OpenAI API reference, images).
 */
export function readImageUsage(body: JsonRecord, images: number): UpstreamUsage | null {
  const usage = isRecord(body['usage']) ? body['usage'] : {};
  const promptTokens = readCount(usage['input_tokens']) ?? sumParts(usage['input_tokens_details']);
  const completionTokens = readCount(usage['output_tokens']) ?? sumParts(usage['output_tokens_details']);
  const details = isRecord(usage['input_tokens_details']) ? usage['input_tokens_details'] : {};
  const imageTokens = Math.min(readCount(details['image_tokens']) ?? 0, promptTokens ?? 0);
  return dropEmptyCounts(
    { ...noUpstreamUsage, promptTokens, completionTokens, ...(imageTokens > 0 && { imageTokens }) },
    images,
  );
}

/** Some compatible servers report the parts without their sum. */
function sumParts(details: unknown): number | null {
  const parts = isRecord(details) ? details : {};
  const text = readCount(parts['text_tokens']);
  const image = readCount(parts['image_tokens']);
  return text === null && image === null ? null : (text ?? 0) + (image ?? 0);
}
