// decisions 0048, 0068
import { isDataUri, splitDataUri } from '../../shared/contract/data-uri.ts';
import { AppError, invalidField } from '../../shared/contract/errors.ts';
import { sniffImageType } from '../../shared/contract/image-type.ts';
import type { BudgetShare, FairBudget } from '../../shared/fairness/fair-budget.ts';
import type { ImageJob } from '../../shared/work/queue/job-kinds.ts';
import { decodeBase64 } from '../upstreams/base64.ts';
import type { SafeFetchClient } from '../outbound/safe-fetch-client.ts';
import type { InputImage } from '../upstreams/upstream.ts';
import {
  acquireMediaMemory,
  msUntilDeadline,
  maxImageBytes,
  maxRequestBytes,
  type MediaRequest,
} from './media-memory.ts';
import type { ReencodedImage, ReencodeImage } from './reencode-image.ts';

/** OpenAI's limit. */
const maxMaskBytes = 4_000_000;
/**
 * Re-encoding a photograph without visible loss may make it up to two and a half times as large. If that is too much,
 * it is encoded at the usual quality of cameras and web pages, which makes it about as large as before or a little
 * smaller.
 */
const usualQuality = 75;
/** For files that are already compressed more than that, which would grow even so. */
const lowQuality = 40;
/** A WebP of this size would exceed the limit without visible loss, after taking seconds to encode. */
const maxFineWebpBytes = maxImageBytes / 2.5;
/**
 * While images are sent, they are in memory twice: as raw bytes, and as form data or base64, which takes 4/3 of the
 * bytes.
 */
const memoryPerByte = 7 / 3;

export interface InputImageSources {
  readonly fetchClient: SafeFetchClient;
  readonly reencodeImage: ReencodeImage;
  /**
   * The memory budget for callers' images, in bytes. Memory is reserved before they are loaded and released when their
   * request has ended.
   */
  readonly memory: FairBudget;
}

export interface LoadedInputs {
  readonly inputs: readonly InputImage[];
  readonly mask: InputImage | null;
  /** Releases the memory once the request has ended and nothing refers to its images any more. */
  release(): void;
}

const noInputs: LoadedInputs = { inputs: [], mask: null, release: () => undefined };

type Location = readonly (string | number)[];

/**
 * Loads the input images of an image edit, one after another. URLs are fetched through the SSRF guard; data URIs are
 * decoded. All images are re-encoded from their pixels.
 * @throws AppError `unsafe_url` or `validation_failed`, which specify the field; `deadline_exceeded`; the signal's
 * reason when it is aborted
 */
export async function loadInputImages(
  sources: InputImageSources,
  job: ImageJob,
  signal: AbortSignal,
): Promise<LoadedInputs> {
  if (job.inputs.length === 0 && job.mask === null) return noInputs;
  const share = await acquireMediaMemory(sources.memory, job.request, computeMaxBytes(job), signal);
  try {
    return await new InputLoad(sources, job.request, signal).load(job, share);
  } catch (error) {
    share.release();
    throw error;
  }
}

/** Returns the maximum total bytes of the files that are already re-encoded and the one that is being re-encoded. */
function computeMaxBytes({ inputs, mask }: ImageJob): number {
  const count = inputs.length + (mask === null ? 0 : 1);
  return Math.min(count * maxImageBytes, maxRequestBytes) + maxImageBytes;
}

class InputLoad {
  readonly #sources: InputImageSources;
  readonly #request: MediaRequest;
  readonly #signal: AbortSignal;
  #bytes = 0;

  constructor(sources: InputImageSources, request: MediaRequest, signal: AbortSignal) {
    this.#sources = sources;
    this.#request = request;
    this.#signal = signal;
  }

  async load(
    { inputs: urls, inputLocs, mask: maskUrl }: ImageJob,
    share: BudgetShare,
  ): Promise<LoadedInputs> {
    const inputs: ReencodedImage[] = [];
    for (const [i, url] of urls.entries()) inputs.push(await this.#loadImage(url, inputLocs[i] ?? ['body']));
    const mask = maskUrl === null ? null : await this.#loadMask(maskUrl, inputs[0]);
    share.shrink(Math.ceil(this.#bytes * memoryPerByte));
    return { inputs, mask, release: () => share.release() };
  }

  async #loadMask(url: string, first: ReencodedImage | undefined): Promise<InputImage> {
    const loc = ['body', 'mask'];
    const bytes = await this.#loadBytes(url, loc);
    const requirement =
      'must be a PNG with an alpha channel, smaller than 4 MB and with the same dimensions as the first input image';
    if (bytes.length >= maxMaskBytes || sniffImageType(bytes) !== 'image/png')
      throw invalidField(loc, requirement);
    const mask = await this.#reencode(bytes, loc);
    if (!mask.hasAlpha) throw invalidField(loc, `${requirement}: the mask has no alpha channel`);
    if (mask.width !== first?.width || mask.height !== first.height) {
      const size = ({ width, height }: InputImage): string => `${width}x${height}`;
      const sizes = first === undefined ? '' : `: the mask is ${size(mask)}, the image is ${size(first)}`;
      throw invalidField(loc, `${requirement}${sizes}`);
    }
    return mask;
  }

  async #loadImage(url: string, loc: Location): Promise<ReencodedImage> {
    return await this.#reencode(await this.#loadBytes(url, loc), loc);
  }

  async #loadBytes(url: string, loc: Location): Promise<Buffer> {
    return isDataUri(url) ? await this.#decode(url, loc) : await this.#fetch(url, loc);
  }

  async #decode(url: string, loc: Location): Promise<Buffer> {
    const base64 = splitDataUri(url)?.base64;
    const bytes = base64 === undefined ? null : await decodeBase64(base64, this.#request.accountId);
    if (bytes !== null && bytes.length <= maxImageBytes) return bytes;
    const msg =
      bytes === null
        ? 'must contain padded base64 in the standard alphabet, without whitespace'
        : `must contain at most ${maxImageBytes / 1e6} MB`;
    throw invalidField(loc, msg);
  }

  async #fetch(url: string, loc: Location): Promise<Buffer> {
    try {
      const { accountId } = this.#request;
      const limits = { maxBytes: maxImageBytes, accountId, signal: this.#signal };
      return (await this.#sources.fetchClient.fetchBytes(url, limits)).bytes;
    } catch (error) {
      // Add the field, which the fetch client does not know.
      const [issue] = error instanceof AppError ? error.issues : [];
      if (!(error instanceof AppError) || issue === undefined) throw error;
      throw invalidField(loc, issue.msg, { code: error.code, type: issue.type });
    }
  }

  async #reencode(bytes: Buffer, loc: Location): Promise<ReencodedImage> {
    const isLargeWebp = bytes.length > maxFineWebpBytes && sniffImageType(bytes) === 'image/webp';
    let image = await this.#encode(bytes, loc, isLargeWebp ? usualQuality : null);
    for (const quality of isLargeWebp ? [lowQuality] : [usualQuality, lowQuality]) {
      if (image.bytes.length <= maxImageBytes || image.contentType === 'image/png') break;
      image = await this.#encode(bytes, loc, quality);
    }
    this.#bytes += image.bytes.length;
    if (image.bytes.length > maxImageBytes)
      throw invalidField(
        loc,
        `the image is larger than ${maxImageBytes / 1e6} MB when encoded again. Send a smaller image`,
      );
    if (this.#bytes > maxRequestBytes) {
      const msg = `the images exceed ${maxRequestBytes / 1e6} MB in total. Send fewer or smaller images`;
      throw invalidField(loc, msg);
    }
    return image;
  }

  async #encode(bytes: Buffer, loc: Location, quality: number | null): Promise<ReencodedImage> {
    const { accountId } = this.#request;
    const waitMs = msUntilDeadline(this.#request);
    const options = { accountId, origin: 'caller', signal: this.#signal, waitMs } as const;
    const image = await this.#sources.reencodeImage(bytes, { ...options, format: null, quality });
    if ('problem' in image) throw invalidField(loc, `the image ${image.problem}`);
    return image;
  }
}
