import { encodeBase64 } from '../../../shared/runtime/base64.ts';
import { fewerInputBytes, noMask } from '../../../shared/routing/image-needs.ts';
import { writeImagePrompt } from '../image-prompt.ts';
import type { JsonRecord } from '../json-value.ts';
import { type ImageCall, UpstreamError, type UpstreamTarget } from '../upstream.ts';
import { toImageConfig } from './to-image-config.ts';

/**
 * `generateContent` of an image and no words. It makes one: `n` of them are as many calls. Images to edit or to go by come
 * before the prompt, which speaks of them.
 * @throws UpstreamError `rejected` where Gemini cannot do what is asked
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

/** Routes that cannot serve a request are left out before they are called; this holds where a caller of ours did not ask. */
function checkNeeds({ drops }: UpstreamTarget, { inputs, mask, options }: ImageCall): void {
  const ask = {
    inputs: inputs.length,
    inputBytes: inputs.reduce((sum, { bytes }) => sum + bytes.length, 0),
    hasMask: mask !== null,
    background: options.background,
  };
  const unmet = [noMask, fewerInputBytes].find((need) => !drops.has(need.field) && need.isAsked(ask));
  if (unmet !== undefined) throw new UpstreamError('rejected', `The model ${unmet.why}.`);
}
