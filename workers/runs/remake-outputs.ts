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
 * Re-encodes the images that a vendor returned, in the requested format. Anything that is not an image is left
 * out of the response and not charged.
 * @throws UpstreamError if there were images and none of them is valid
 */
export async function remakeOutputs(remaking: OutputRemaking, answer: ImageResponse): Promise<ImageResponse> {
  if (answer.images.length === 0) return answer;
  const images: GeneratedImage[] = [];
  let { missing } = answer;
  // One at a time, because a process has few decoders.
  for (const { bytes, revisedPrompt } of answer.images) {
    const remade = await remakeOutput(remaking, bytes);
    if ('fault' in remade) missing ??= notAnImage(remade);
    else images.push({ bytes: remade.bytes, contentType: remade.contentType, revisedPrompt });
  }
  if (images.length === 0 && missing !== undefined) throw missing;
  return { ...answer, images, ...(missing === undefined ? {} : { missing }) };
}

export async function remakeOutput(
  { remakeImage, job, signal }: OutputRemaking,
  bytes: Buffer,
): Promise<RemadeImage | ImageFault> {
  const { outputFormat: format, outputCompression: quality } = job.options;
  const { accountId } = job.request;
  // The vendor was called and is paid, so this waits for a decoder however long the queue is.
  return await remakeImage(bytes, { accountId, signal, waitMs: Infinity, format, quality });
}

const notAnImage = ({ fault }: ImageFault): UpstreamError =>
  new UpstreamError('unavailable', `The upstream returned an image that ${fault}.`);
