import type { ImageJob } from '../../shared/queue/job-kinds.ts';
import type { ImageFault } from '../media/decoders.ts';
import type { RemadeImage, RemakeImage } from '../media/remake-image.ts';
import { UpstreamError, type GeneratedImage, type ImageResponse } from '../upstreams/upstream.ts';

export interface OutputRemaking {
  readonly remakeImage: RemakeImage;
  readonly job: ImageJob;
  readonly signal: AbortSignal;
}

/**
 * Re-encodes the images that a vendor returned, in the requested format. Anything that is not an image is omitted from
 * the response and not charged.
 * @throws UpstreamError if there were images and none of them is valid
 */
export async function remakeOutputs(
  reencoding: OutputRemaking,
  response: ImageResponse,
): Promise<ImageResponse> {
  if (response.images.length === 0) return response;
  const images: GeneratedImage[] = [];
  let { missing } = response;
  // Re-encode one at a time, because a process has few decoders.
  for (const { bytes, revisedPrompt } of response.images) {
    const image = await remakeOutput(reencoding, bytes);
    if ('fault' in image) missing ??= notAnImage(image);
    else images.push({ bytes: image.bytes, contentType: image.contentType, revisedPrompt });
  }
  if (images.length === 0 && missing !== undefined) throw missing;
  return { ...response, images, ...(missing === undefined ? {} : { missing }) };
}

export async function remakeOutput(
  { remakeImage, job, signal }: OutputRemaking,
  bytes: Buffer,
): Promise<RemadeImage | ImageFault> {
  const { outputFormat: format, outputCompression: quality } = job.options;
  const { accountId } = job.request;
  // The vendor bills the call, so wait for a decoder however long the queue is.
  return await remakeImage(bytes, { accountId, signal, waitMs: Infinity, format, quality });
}

const notAnImage = ({ fault }: ImageFault): UpstreamError =>
  new UpstreamError('unavailable', `The upstream returned an image that ${fault}.`);
