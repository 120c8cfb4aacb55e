import { makesOneImagePerCall } from '../../../shared/routing/image-models.ts';
import { isJson, readRecord, type VendorCall } from '../call-vendor.ts';
import type { HttpResponse } from '../http-client.ts';
import { makeOneImagePerCall } from '../one-image-per-call.ts';
import { encodeJsonBody } from '../request-body.ts';
import type { CallContext, ImageResponse, ImageCall, UpstreamTarget } from '../upstream.ts';
import { fromImageResponse } from './from-image-response.ts';
import { readImageStream } from './from-image-stream.ts';
import { requestsStream, toImageEditRequest, toImageRequest } from './to-image-request.ts';

/** Four images of 12 MB in base64, the largest that OpenAI's models generate. */
const maxBodyBytes = 64 * 1024 * 1024;

/** Sends a request to a route's vendor. */
export type PostToVendor = (call: Omit<VendorCall, 'headers'>) => Promise<HttpResponse>;

/** Makes one call, or one call per image in parallel for models that make one image per call. */
export async function generateImages(
  post: PostToVendor,
  target: UpstreamTarget,
  call: ImageCall,
  context: CallContext,
): Promise<ImageResponse> {
  const isEdit = call.inputs.length > 0;
  const path = isEdit ? '/images/edits' : '/images/generations';
  // The body is the same for all calls, so encode it once.
  const body = isEdit
    ? toImageEditRequest(target, call)
    : await encodeJsonBody(toImageRequest(target, call), context.accountId);

  async function make(n: number): Promise<ImageResponse> {
    const isSlowStream = requestsStream(target, call);
    const response = await post({ path, body, isStream: false, isSlowStream });
    // Servers that cannot stream send a complete response even if a stream was requested.
    if (isSlowStream && !isJson(response))
      return await readImageStream(response, call, target.apiKey, context);
    const images = await readRecord(response, maxBodyBytes, 'an image response', context);
    return await fromImageResponse(images, n, target.apiKey, context.accountId);
  }

  if (call.n > 1 && makesOneImagePerCall(target.model, target.drops)) {
    return await makeOneImagePerCall(call.n, context, () => make(1));
  }
  return await make(call.n);
}
