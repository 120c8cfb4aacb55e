import type { HttpResponse } from '../http-client.ts';
import { readText } from '../json-value.ts';
import { SseJsonReader } from '../sse-json-reader.ts';
import {
  type CallContext,
  type GeneratedImage,
  type ImageResponse,
  type ImageCall,
  UpstreamError,
} from '../upstream.ts';
import { toEmbeddedError } from './from-error.ts';
import { readImageUsage, toImage } from './from-image-response.ts';
import { isErrorBody } from './from-response.ts';

/** Limit per event: an image of 48 MB in base64. */
const maxEventBytes = 64 * 1024 * 1024;

/**
 * Reads a stream of previews up to the final image (OpenAI API reference: image streaming). After a preview, nothing
 * more is read from the vendor until the caller has read it.
 * @throws UpstreamError; with `mayStillRun` if the stream ended without an image, because the vendor may still make it
 */
export async function readImageStream(
  response: HttpResponse,
  call: ImageCall,
  apiKey: string | null,
  context: CallContext,
): Promise<ImageResponse> {
  const reader = new SseJsonReader(response, maxEventBytes, context.accountId);
  let previews = 0;
  let isComplete = false;
  try {
    for (;;) {
      const event = await readNext(reader);
      const type = readText(event.data['type']) ?? event.name;
      if (type === 'error' || isErrorBody(event.data)) throw toEmbeddedError(event.data, apiKey);
      if (type.endsWith('.partial_image') && previews < (call.partialImages ?? 0)) {
        if (await sendPreview(event.data, previews, call, context)) previews += 1;
      }
      if (!type.endsWith('.completed')) continue;
      const image = await toImage(event.data, context.accountId);
      isComplete = true;
      return { images: [image], calls: 1, usage: readImageUsage(event.data, 1) };
    }
  } finally {
    // After the image, only an end marker follows, so the connection can be reused.
    if (isComplete) response.release();
    else response.abort();
  }
}

async function readNext(
  reader: SseJsonReader,
): Promise<{ readonly name: string; readonly data: Readonly<Record<string, unknown>> }> {
  try {
    const event = await reader.next();
    if (event !== null) return event;
  } catch (error) {
    if (!(error instanceof UpstreamError) || error.failure !== 'unavailable') throw error;
    throw endedEarly(`: ${error.message}`, error);
  }
  throw endedEarly('');
}

function endedEarly(reason: string, cause?: UpstreamError): UpstreamError {
  const message = `the upstream stream ended without a finished image${reason}`;
  return new UpstreamError('unavailable', message, { mayStillRun: true, cause });
}

/** @returns whether a preview was sent; an invalid one is skipped and does not fail the image */
async function sendPreview(
  data: Readonly<Record<string, unknown>>,
  index: number,
  { onPartial }: ImageCall,
  context: CallContext,
): Promise<boolean> {
  let image: GeneratedImage;
  try {
    image = await toImage(data, context.accountId);
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error;
    context.log.warn({ reason: error.message }, 'invalid preview skipped');
    return false;
  }
  await onPartial?.({ bytes: image.bytes, contentType: image.contentType, index });
  context.signal.throwIfAborted();
  return true;
}
