import type { ImageJob } from '../../shared/queue/job-kinds.ts';
import type { ImageFault } from '../media/decoders.ts';
import type { RemadeImage, RemakeImage } from '../media/remake-image.ts';
import { UpstreamError, type GeneratedImage, type ImageAnswer } from '../upstreams/upstream.ts';

export interface OutputRemaking {
  readonly remakeImage: RemakeImage;
  readonly job: ImageJob;
  readonly signal: AbortSignal;
}

/**
 * Makes anew what a vendor answered: it is an image then, in the format that was asked for. What is none is missing from the
 * answer, and is not paid for.
 * @throws UpstreamError where there were images, and none of them is one
 */
export async function remakeOutputs(remaking: OutputRemaking, answer: ImageAnswer): Promise<ImageAnswer> {
  if (answer.images.length === 0) return answer;
  const images: GeneratedImage[] = [];
  let { missing } = answer;
  // One after the other, as the decoders of a process are few.
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
  // The vendor was asked, and is paid: however many wait for a decoder, this is waited for.
  return await remakeImage(bytes, { accountId, signal, waitMs: Infinity, format, quality });
}

const notAnImage = ({ fault }: ImageFault): UpstreamError =>
  new UpstreamError('unavailable', `The upstream returned an image that ${fault}.`);
