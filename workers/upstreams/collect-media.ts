import { isRecord, readArray, readText } from './json-value.ts';
import type { CallContext, ChatBody, LoadedMedia, Upstream, UpstreamTarget } from './upstream.ts';

/** Of one request at once: enough that pictures do not queue, few enough that one caller fills no worker's memory. */
const MAX_AT_ONCE = 4;

/** Who a chat may be sent to. */
export interface ImageTaker {
  readonly upstream: Pick<Upstream, 'wantsImageBytes'>;
  readonly target: UpstreamTarget;
}

/**
 * Of one chat: answers what loads the pictures that all of the takers are given as bytes and that were not loaded
 * before; null where that is none.
 */
export function createImageFinder(
  body: ChatBody,
  context: CallContext,
): (takers: readonly ImageTaker[]) => (() => Promise<void>) | null {
  const urls = listImageUrls(body);
  const loaded = new Set<string>();
  return (takers) => {
    const isWanted = (url: string): boolean =>
      takers.every(({ upstream, target }) => upstream.wantsImageBytes?.(target, url) === true);
    const missing = urls.filter((url) => !loaded.has(url) && isWanted(url));
    if (missing.length === 0) return null;
    return async () => {
      await loadImages(missing, context);
      for (const url of missing) loaded.add(url);
    };
  };
}

/** The pictures of a chat that the dialect wants as bytes, so that its translation itself does no I/O. */
export async function collectImages(
  body: ChatBody,
  context: CallContext,
  wants: (url: string) => boolean,
): Promise<ReadonlyMap<string, LoadedMedia>> {
  return await loadImages(listImageUrls(body).filter(wants), context);
}

/** Rejects with the first failure; what is still being loaded then is given up. */
async function loadImages(
  urls: readonly string[],
  context: CallContext,
): Promise<ReadonlyMap<string, LoadedMedia>> {
  const loaded = new Map<string, LoadedMedia>();
  const waiting = urls.toReversed();
  const failed = new AbortController();
  const signal = AbortSignal.any([context.signal, failed.signal]);

  async function loadRest(): Promise<void> {
    for (let url = waiting.pop(); url !== undefined; url = waiting.pop()) {
      loaded.set(url, await context.media.loadImage(url, signal));
    }
  }

  try {
    await context.media.reserve(urls, signal);
    await Promise.all(Array.from({ length: Math.min(MAX_AT_ONCE, waiting.length) }, loadRest));
  } catch (error) {
    waiting.length = 0;
    failed.abort(error);
    throw error;
  }
  return loaded;
}

/** Each once, in the order in which they come. */
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

/** The URL of a content part that is a picture; null for any other part. */
export function readImageUrl(part: Readonly<Record<string, unknown>>): string | null {
  return isRecord(part['image_url']) ? readText(part['image_url']['url']) : null;
}
