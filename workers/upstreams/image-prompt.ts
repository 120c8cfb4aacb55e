import type { ImageCall } from './upstream.ts';

/**
 * Writes the prompt for a vendor without `negative_prompt`, and possibly without `style`. Each becomes a separate
 * sentence after the caller's prompt: first the style, then what to avoid.
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
