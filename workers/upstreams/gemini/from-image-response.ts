import { shorten } from '../../../shared/platform/runtime/shorten.ts';
import { decodeImage, readImageType } from '../image-bytes.ts';
import { readFinishWord } from '../finish-reasons.ts';
import { dropEmptyCounts } from '../image-usage.ts';
import { isRecord, type JsonRecord } from '../../../shared/encoding/json-record.ts';
import { readArray, readText } from '../json-value.ts';
import { type GeneratedImage, type ImageResponse, UpstreamError, type UpstreamUsage } from '../upstream.ts';
import { isErrorBody, toEmbeddedError } from './from-error.ts';
import { readCounts, toUsage } from './from-usage.ts';

/**
 * Returns the first image of a response, and its usage. The model may also report that it ended without an image. If
 * the vendor reported tokens, that is a valid response: it is charged, and a retry would cost the same again.
 * @throws UpstreamError if there is neither an image nor such a report
 */
export async function fromImageResponse(
  body: JsonRecord,
  apiKey: string | null,
  accountId: string,
): Promise<ImageResponse> {
  if (isErrorBody(body)) {
    throw toEmbeddedError(body, apiKey);
  }
  const candidates = readArray(body['candidates']).filter(isRecord);
  const data = candidates.flatMap(listImages)[0];
  if (data === undefined) {
    const usage = readImageUsage(body, 0);
    const noImageError = explainNoImages(body, candidates, usage !== null);
    if (usage === null || noImageError.failure !== 'rejected') throw noImageError;
    return { images: [], shortfallReason: noImageError, calls: 1, usage };
  }
  const bytes = await decodeImage(data, accountId);
  const image: GeneratedImage = { bytes, contentType: readImageType(bytes), revisedPrompt: null };
  return { images: [image], calls: 1, usage: readImageUsage(body, 1) };
}

function readImageUsage(body: JsonRecord, images: number): UpstreamUsage | null {
  const counts = readCounts(body, null);
  return counts === null ? null : dropEmptyCounts(toUsage(counts, images > 0), images);
}

/** Skips images among the thoughts, which are drafts. */
function listImages(candidate: JsonRecord): string[] {
  const content = isRecord(candidate['content']) ? candidate['content'] : {};
  return readArray(content['parts']).flatMap((part) =>
    isRecord(part) && part['thought'] !== true && isRecord(part['inlineData'])
      ? (readText(part['inlineData']['data']) ?? [])
      : [],
  );
}

/**
 * Explains a response without images. A retry does not help if the vendor refuses to generate the image. Any other
 * finish reason may be accidental, and is retried only if the call was free.
 */
function explainNoImages(
  body: JsonRecord,
  candidates: readonly JsonRecord[],
  hasUsage: boolean,
): UpstreamError {
  const feedback = isRecord(body['promptFeedback']) ? body['promptFeedback'] : {};
  const blockReason = readText(feedback['blockReason']);
  const finishReasons = candidates.flatMap((candidate) => readText(candidate['finishReason']) ?? []);
  const refusalReason =
    blockReason ?? finishReasons.find((native) => readFinishWord(native) === 'content_filter');
  if (refusalReason !== undefined) {
    return new UpstreamError(
      'rejected',
      `The model refused to generate this image (${shortenReason(refusalReason)}).`,
    );
  }
  const [finishReason] = finishReasons;
  if (finishReason !== undefined && hasUsage) {
    return new UpstreamError(
      'rejected',
      `The model stopped without generating this image (${shortenReason(finishReason)}).`,
    );
  }
  const message = `the upstream sent no image (${shortenReason(finishReason ?? 'no reason')})`;
  return new UpstreamError('unavailable', message, { isRequestFailure: finishReason !== undefined });
}

const shortenReason = (reason: string): string => shorten(reason, 100);
