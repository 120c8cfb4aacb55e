import type { ImageJob } from '../../shared/work/queue/job-kinds.ts';
import type { ImageProblem } from '../media/image-limits.ts';
import type { ReencodedImage, ReencodeImage } from '../media/reencode-image.ts';
import { UpstreamError, type GeneratedImage, type ImageResponse } from '../upstreams/upstream.ts';

export interface OutputReencoding {
  readonly reencodeImage: ReencodeImage;
  readonly job: ImageJob;
  readonly signal: AbortSignal;
}

/**
 * Re-encodes the images that a vendor returned, in the requested format. Anything that is not an image is omitted from
 * the response and not charged.
 * @throws UpstreamError if there were images and none of them is valid
 */
export async function reencodeOutputs(
  reencoding: OutputReencoding,
  response: ImageResponse,
): Promise<ImageResponse> {
  if (response.images.length === 0) return response;
  const images: GeneratedImage[] = [];
  let { shortfallReason } = response;
  // Re-encode one at a time, because a process has few decoders.
  for (const { bytes, revisedPrompt } of response.images) {
    const image = await reencodeOutput(reencoding, bytes);
    if ('problem' in image) shortfallReason ??= notAnImage(image);
    else images.push({ bytes: image.bytes, contentType: image.contentType, revisedPrompt });
  }
  if (images.length === 0 && shortfallReason !== undefined) throw shortfallReason;
  return { ...response, images, ...(shortfallReason === undefined ? {} : { shortfallReason }) };
}

export async function reencodeOutput(
  { reencodeImage, job, signal }: OutputReencoding,
  bytes: Buffer,
): Promise<ReencodedImage | ImageProblem> {
  const { outputFormat: format, outputCompression: quality } = job.options;
  const { accountId } = job.request;
  // The vendor bills the call, so wait for a decoder without a time limit.
  return await reencodeImage(bytes, {
    accountId,
    origin: 'vendor',
    signal,
    waitMs: Infinity,
    format,
    quality,
  });
}

const notAnImage = ({ problem }: ImageProblem): UpstreamError =>
  new UpstreamError('unavailable', `The upstream returned an image that ${problem}.`);
