import { encodeBase64 } from '../base64.ts';
import { fewerInputBytes, noMask } from '../../../shared/routing/image-needs.ts';
import { writeImagePrompt } from '../image-prompt.ts';
import type { JsonRecord } from '../../../shared/encoding/json-record.ts';
import { type ImageCall, UpstreamError, type UpstreamTarget } from '../upstream.ts';
import { toImageConfig } from './to-image-config.ts';

/**
 * Builds a `generateContent` request for one image without text; `n` images take `n` calls. Images to edit or to use as
 * references come before the prompt, which refers to them.
 * @throws UpstreamError `rejected` if Gemini does not support the request
 */
export async function toImageRequest(
  target: UpstreamTarget,
  call: ImageCall,
  accountId: string,
): Promise<JsonRecord> {
  const { drops } = target;
  checkNeeds(target, call);
  const imageConfig = toImageConfig(
    drops.has('size') ? null : call.size,
    drops.has('quality') ? null : call.quality,
  );
  const inputs: JsonRecord[] = [];
  for (const { bytes, contentType } of call.inputs) {
    inputs.push({ inlineData: { mimeType: contentType, data: await encodeBase64(bytes, accountId) } });
  }
  const text = writeImagePrompt(call, { withStyle: !drops.has('style') });
  return {
    contents: [{ role: 'user', parts: [...inputs, { text }] }],
    generationConfig: {
      responseModalities: ['IMAGE'],
      ...(imageConfig === null ? {} : { imageConfig }),
    },
  };
}

/** Routes that cannot serve a request are normally filtered out beforehand. This covers calls without that filter. */
function checkNeeds({ drops }: UpstreamTarget, { inputs, mask, options }: ImageCall): void {
  const request = {
    inputs: inputs.length,
    inputBytes: inputs.reduce((sum, { bytes }) => sum + bytes.length, 0),
    hasMask: mask !== null,
    background: options.background,
  };
  const unmetNeed = [noMask, fewerInputBytes].find(
    (need) => !drops.has(need.field) && need.isRequested(request),
  );
  if (unmetNeed !== undefined) throw new UpstreamError('rejected', `The model ${unmetNeed.why}.`);
}
