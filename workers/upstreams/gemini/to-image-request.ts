import { writeImagePrompt } from '../image-prompt.ts';
import type { JsonRecord } from '../json-value.ts';
import type { ImageCall, UpstreamTarget } from '../upstream.ts';
import { toImageConfig } from './to-image-config.ts';

/** `generateContent` of a picture and no words. It makes one: `n` of them are as many calls. */
export function toImageRequest(target: UpstreamTarget, call: ImageCall): JsonRecord {
  const { drops } = target;
  const imageConfig = toImageConfig(
    drops.has('size') ? null : call.size,
    drops.has('quality') ? null : call.quality,
  );
  const text = writeImagePrompt(call, { withStyle: !drops.has('style') });
  return {
    contents: [{ role: 'user', parts: [{ text }] }],
    generationConfig: {
      responseModalities: ['IMAGE'],
      ...(imageConfig === null ? {} : { imageConfig }),
    },
  };
}
