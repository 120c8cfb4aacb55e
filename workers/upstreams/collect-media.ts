import { isRecord, readArray, readText } from './json-value.ts';
import type { CallContext, ChatBody, LoadedMedia } from './upstream.ts';

/** Of one request at once: enough that pictures do not queue, few enough that one caller fills no worker's memory. */
const MAX_AT_ONCE = 4;

/**
 * Loads the pictures of a chat that the dialect wants as bytes, each URL once, so that its translation itself does no
 * I/O. Rejects with the first failure; what is still being loaded then is given up.
 */
export async function collectImages(
  body: ChatBody,
  context: CallContext,
  wants: (url: string) => boolean,
): Promise<ReadonlyMap<string, LoadedMedia>> {
  const loaded = new Map<string, LoadedMedia>();
  const waiting = [...new Set(findImageUrls(body))].filter(wants).toReversed();
  const failed = new AbortController();
  const signal = AbortSignal.any([context.signal, failed.signal]);

  async function loadRest(): Promise<void> {
    for (let url = waiting.pop(); url !== undefined; url = waiting.pop()) {
      loaded.set(url, await context.media.loadImage(url, signal));
    }
  }

  try {
    await Promise.all(Array.from({ length: Math.min(MAX_AT_ONCE, waiting.length) }, loadRest));
  } catch (error) {
    waiting.length = 0;
    failed.abort(error);
    throw error;
  }
  return loaded;
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
