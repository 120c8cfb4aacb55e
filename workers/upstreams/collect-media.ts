import { isRecord } from '../../shared/encoding/json-record.ts';
import { readArray, readText } from './json-value.ts';
import type { CallContext, ChatBody, LoadedMedia, Upstream, UpstreamTarget } from './upstream.ts';

/**
 * Concurrent loads per request: enough for most requests, and few enough that one caller does not fill a worker's
 * memory.
 */
const MAX_CONCURRENT_LOADS = 4;

/** A candidate to which a chat may be sent. */
export interface ImageCandidate {
  readonly upstream: Pick<Upstream, 'needsImageBytes'>;
  readonly target: UpstreamTarget;
}

/**
 * Creates the image finder of one chat. The finder returns a function that loads the images that all of the candidates
 * require as bytes and that are not loaded yet, or null if there are none.
 */
export function createImageFinder(
  body: ChatBody,
  context: CallContext,
): (candidates: readonly ImageCandidate[]) => (() => Promise<void>) | null {
  const urls = listImageUrls(body);
  const loaded = new Set<string>();
  return (candidates) => {
    const isRequired = (url: string): boolean =>
      candidates.every(({ upstream, target }) => upstream.needsImageBytes?.(target, url) === true);
    const urlsToLoad = urls.filter((url) => !loaded.has(url) && isRequired(url));
    if (urlsToLoad.length === 0) return null;
    return async () => {
      await loadImages(urlsToLoad, context);
      for (const url of urlsToLoad) loaded.add(url);
    };
  };
}

/** Loads the images of a chat that the dialect sends as bytes, so that the translation does no I/O. */
export async function collectImages(
  body: ChatBody,
  context: CallContext,
  isWanted: (url: string) => boolean,
): Promise<ReadonlyMap<string, LoadedMedia>> {
  const urls = listImageUrls(body).filter(isWanted);
  return urls.length === 0 ? new Map() : await loadImages(urls, context);
}

/** Rejects with the first failure, and aborts the remaining loads. */
async function loadImages(
  urls: readonly string[],
  context: CallContext,
): Promise<ReadonlyMap<string, LoadedMedia>> {
  const loaded = new Map<string, LoadedMedia>();
  const remainingUrls = urls.toReversed();
  const firstFailure = new AbortController();
  const signal = AbortSignal.any([context.signal, firstFailure.signal]);

  async function loadNext(): Promise<void> {
    for (let url = remainingUrls.pop(); url !== undefined; url = remainingUrls.pop()) {
      loaded.set(url, await context.media.loadImage(url, signal));
    }
  }

  try {
    await context.media.reserve(urls, signal);
    await Promise.all(Array.from({ length: Math.min(MAX_CONCURRENT_LOADS, remainingUrls.length) }, loadNext));
  } catch (error) {
    remainingUrls.length = 0;
    firstFailure.abort(error);
    throw error;
  }
  return loaded;
}

/** Lists each URL once, in order of appearance. */
function listImageUrls(body: ChatBody): string[] {
  return [...new Set(findImageUrls(body))];
}

function* findImageUrls(body: ChatBody): Generator<string> {
  for (const message of body.messages) {
    for (const part of readArray(message.content)) {
      const url = isRecord(part) ? readImageUrl(part) : null;
      if (url !== null) yield url;
    }
  }
}

/** Returns the URL of an image part; null for any other part. */
export function readImageUrl(part: Readonly<Record<string, unknown>>): string | null {
  return isRecord(part['image_url']) ? readText(part['image_url']['url']) : null;
}
