import type { ImageCall } from './upstream.ts';

/**
 * The prompt for a vendor that knows no `negative_prompt`, and perhaps no `style`: each becomes a sentence of its own
 * after the caller's words, the style first, then what to avoid.
 */
export function writeImagePrompt(call: ImageCall, { withStyle }: { readonly withStyle: boolean }): string {
  const sentences = [call.prompt];
  if (call.style !== null && call.style.trim() !== '' && withStyle) {
    sentences.push(`Style: ${call.style.trim()}.`);
  }
  if (call.negativePrompt !== null && call.negativePrompt.trim() !== '') {
    sentences.push(`Avoid: ${call.negativePrompt.trim()}.`);
  }
  return sentences.join('\n\n');
}
