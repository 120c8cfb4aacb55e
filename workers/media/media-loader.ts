import { AppError, invalidField } from '../../shared/contract/errors.ts';
import { FairBudget, type AcquireOptions, type BudgetShare } from '../../shared/fairness/fair-budget.ts';
import { showUrl } from '../outbound/url-errors.ts';
import type { SafeFetchClient } from '../outbound/safe-fetch-client.ts';
import type { LoadedMedia, MediaLoader } from '../upstreams/upstream.ts';
import type { CheckImage } from './check-image.ts';
import { acquireMediaMemory, maxImageBytes, maxRequestBytes, type MediaRequest } from './media-memory.ts';
import { countBase64Bytes, isDataUri, splitDataUri } from '../../shared/contract/data-uri.ts';
import { decodeBase64, encodeBase64 } from '../upstreams/base64.ts';

/** For all images of one request. */
const maxRequestPixels = 300_000_000;
const maxRequestImages = 500;
/** Concurrent fetches per request, so that many slow URLs leave capacity for other requests. */
const maxRequestFetches = 4;
/** Measured from the request's first image. No fetch or check is started after this. */
const maxRequestMs = 60_000;

/** Shared by all requests of a process. */
export interface MediaSources {
  readonly fetchClient: SafeFetchClient;
  readonly checkImage: CheckImage;
  /**
   * The memory budget for fetched images, in bytes. Memory is reserved before the fetch and released when the request
   * has ended.
   */
  readonly memory: FairBudget;
}

export interface RequestMedia extends MediaLoader {
  /** Releases the memory once the request has ended and nothing refers to its images any more. */
  release(): void;
}

/**
 * Creates the loader for the media in one request's messages. It loads each URL only once.
 */
export function createMediaLoader(sources: MediaSources, request: MediaRequest): RequestMedia {
  return new RequestMediaLoader(sources, request);
}

/** The images of a request that are loaded at the same time. Each URL is a holder, so they take turns in their order. */
interface LoadBudgets {
  readonly fetches: FairBudget;
  /** One at a time, so that the sums are right and a request with many images does not delay others. */
  readonly checks: FairBudget;
  readonly deadlineAtMs: number;
}

/** Memory reserved for some URLs of a request. */
interface Reservation {
  readonly share: BudgetShare;
  /** Number of URLs that are not loaded yet. */
  unloadedCount: number;
  /** Bytes used by the URLs that are loaded. */
  loadedBytes: number;
}

class RequestMediaLoader implements RequestMedia {
  readonly #sources: MediaSources;
  readonly #request: MediaRequest;
  readonly #loads = new Map<string, Promise<LoadedMedia>>();
  /** Null before the first load, because most requests have no images. */
  #loading: LoadBudgets | null = null;
  /**
   * Aborted by the first failure. The request cannot succeed without all of its images, so the other loads stop. Null
   * before the first load, because most requests have no images.
   */
  #failed: AbortController | null = null;
  /** By URL. */
  readonly #reservations = new Map<string, Reservation>();
  #isReleased = false;
  #images = 0;
  #bytes = 0;
  #pixels = 0;

  constructor(sources: MediaSources, request: MediaRequest) {
    this.#sources = sources;
    this.#request = request;
  }

  async reserve(urls: readonly string[], signal: AbortSignal): Promise<void> {
    const links = urls.filter((url) => !isDataUri(url) && !this.#reservations.has(url));
    if (links.length === 0) return;
    // Even a short URL can make a worker hold megabytes while its request waits for a slot of a route.
    const neededBytes = countMaxBytes(links.length);
    const share = await acquireMediaMemory(this.#sources.memory, this.#request, neededBytes, signal);
    const reservation = { share, unloadedCount: links.length, loadedBytes: 0 };
    for (const url of links) this.#reservations.set(url, reservation);
    // The request may have ended at the moment the memory was granted.
    if (this.#isReleased) this.release();
  }

  async loadImage(url: string, signal: AbortSignal): Promise<LoadedMedia> {
    signal.throwIfAborted();
    const earlierLoad = this.#loads.get(url);
    if (earlierLoad !== undefined) return await earlierLoad;
    const failed = (this.#failed ??= new AbortController());
    const load = this.#load(url, AbortSignal.any([signal, failed.signal]));
    this.#loads.set(url, load);
    load.catch((error: unknown) => {
      // Forget an aborted load, so that the image can be loaded again: it may be valid.
      if (signal.aborted) this.#loads.delete(url);
      else failed.abort(error);
    });
    return await load;
  }

  release(): void {
    this.#isReleased = true;
    for (const { share } of this.#reservations.values()) share.release();
  }

  async #load(url: string, signal: AbortSignal): Promise<LoadedMedia> {
    // The request has already failed.
    signal.throwIfAborted();
    this.#images += 1;
    if (this.#images > maxRequestImages)
      throw imageError(`the messages contain more than ${maxRequestImages} images`);
    const base64 = isDataUri(url) ? readBase64(url) : null;
    const bytes = base64 === null ? await this.#fetch(url, signal) : await this.#decode(base64);
    signal.throwIfAborted();
    this.#bytes += bytes.length;
    if (this.#bytes > maxRequestBytes)
      throw imageError(`the images exceed ${maxRequestBytes / 1e6} MB in total`);
    const mediaType = await this.#check(url, bytes, signal);
    return { mediaType, base64: base64 ?? (await encodeBase64(bytes, this.#request.accountId)) };
  }

  async #decode(base64: string): Promise<Buffer> {
    const bytes = await decodeBase64(base64, this.#request.accountId);
    if (bytes === null) throw imageError(malformedDataUri);
    return bytes;
  }

  get #budgets(): LoadBudgets {
    this.#loading ??= {
      fetches: new FairBudget({ capacity: maxRequestFetches }),
      checks: new FairBudget({ capacity: 1 }),
      deadlineAtMs: performance.now() + maxRequestMs,
    };
    return this.#loading;
  }

  #waitOptions(signal: AbortSignal): AcquireOptions {
    return {
      signal,
      waitMs: Math.max(0, this.#budgets.deadlineAtMs - performance.now()),
      createError: () => new AppError('deadline_exceeded'),
    };
  }

  async #fetch(url: string, signal: AbortSignal): Promise<Buffer> {
    // Memory for images that are loaded together is already reserved. This is for a single one.
    await this.reserve([url], signal);
    const fetch = await this.#budgets.fetches.acquire(url, 1, this.#waitOptions(signal));
    try {
      const { accountId } = this.#request;
      const limits = { maxBytes: maxImageBytes, accountId, signal };
      const { bytes } = await this.#sources.fetchClient.fetchBytes(url, limits);
      this.#recordFetched(url, bytes.length);
      return bytes;
    } finally {
      fetch.release();
    }
  }

  #recordFetched(url: string, bytes: number): void {
    const reservation = this.#reservations.get(url)!;
    // A URL that was aborted after its bytes arrived is fetched again.
    reservation.unloadedCount = Math.max(0, reservation.unloadedCount - 1);
    reservation.loadedBytes += countBase64(bytes);
    reservation.share.shrink(reservation.loadedBytes + countMaxBytes(reservation.unloadedCount));
  }

  async #check(url: string, bytes: Buffer, signal: AbortSignal): Promise<string> {
    const check = await this.#budgets.checks.acquire(url, 1, this.#waitOptions(signal));
    try {
      const checked = await this.#sources.checkImage(bytes, this.#request.accountId, signal);
      if ('problem' in checked) throw imageError(`${nameSource(url)} ${checked.problem}`);
      this.#pixels += checked.pixels;
      if (this.#pixels > maxRequestPixels) {
        throw imageError(`the images have more than ${maxRequestPixels / 1e6} million pixels in total`);
      }
      return checked.mediaType;
    } finally {
      check.release();
    }
  }
}

/** Returns the maximum bytes for this many URLs: the loaded ones, plus those in flight when the limit is exceeded. */
function countMaxBytes(links: number): number {
  return countBase64(Math.min(links * maxImageBytes, maxRequestBytes + maxRequestFetches * maxImageBytes));
}

function countBase64(bytes: number): number {
  return 4 * Math.ceil(bytes / 3);
}

const malformedDataUri =
  'the data URI of an image_url must have the form data:<type>;base64,<data>, with padded base64 in the standard alphabet, without whitespace';

function readBase64(url: string): string {
  const base64 = splitDataUri(url)?.base64 ?? null;
  if (base64 === null) throw imageError(malformedDataUri);
  if (countBase64Bytes(base64) > maxImageBytes) {
    throw imageError(`the data URI of an image_url contains more than ${maxImageBytes / 1e6} MB`);
  }
  return base64;
}

function nameSource(url: string): string {
  return isDataUri(url) ? 'the image in a data URI' : `the image at ${showUrl(url)}`;
}

function imageError(why: string): AppError {
  return invalidField(['body', 'messages'], `${why}.`);
}
