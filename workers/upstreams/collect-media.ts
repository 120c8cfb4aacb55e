import { isRecord, readArray, readText } from './json-value.ts';
import type { CallContext, ChatBody, ChatMessage, LoadedMedia } from './upstream.ts';

/** Loads at once: enough for a page of pictures, few enough that one request does not fill the worker's memory. */
const MAX_LOADS = 4;

/**
 * The pictures of a conversation that a dialect wants the bytes of, by their URLs as the caller wrote them, so that
 * translating the request needs no I/O any more. Each URL is loaded once; the first that fails ends the rest.
 */
export async function collectImages(
  body: ChatBody,
  context: CallContext,
  wants: (url: string) => boolean,
): Promise<ReadonlyMap<string, LoadedMedia>> {
  const urls = [...new Set(body.messages.flatMap(listImageUrls))].filter(wants);
  const images = new Map<string, LoadedMedia>();
  const rest = urls.values();
  const stop = new AbortController();
  const signal = AbortSignal.any([context.signal, stop.signal]);
  async function loadRest(): Promise<void> {
    for (const url of rest) {
      signal.throwIfAborted();
      images.set(url, await context.media.loadImage(url, signal));
    }
  }
  try {
    await Promise.all(Array.from({ length: Math.min(MAX_LOADS, urls.length) }, loadRest));
  } catch (error) {
    stop.abort(error);
    throw error;
  }
  return images;
}

function listImageUrls({ content }: ChatMessage): string[] {
  return readArray(content).flatMap((part) => {
    const image = isRecord(part) ? part['image_url'] : null;
    return isRecord(image) ? (readText(image['url']) ?? []) : [];
  });
}
