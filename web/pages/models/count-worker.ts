import { clearMergeCache, countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { findBlockEnd } from '../../../shared/catalog/text-blocks.ts';

export interface CountRequest {
  readonly id: number;
  readonly text: string;
}

/** `share` of the text has been counted, 0 to 1. */
export interface CountProgress {
  readonly id: number;
  readonly tokens: number;
  readonly share: number;
}

const turnMs = 50;
/** Special tokens such as <|endoftext|> count as ordinary text. */
const asText = { disallowedSpecial: new Set<string>() };

let latestId = 0;

/** Counts in turns: a newer text ends the counting of an older one. */
async function count({ id, text }: CountRequest): Promise<void> {
  let [tokens, start] = [0, 0];
  clearMergeCache();
  while (start < text.length) {
    for (const endMs = performance.now() + turnMs; start < text.length && performance.now() < endMs;) {
      const end = findBlockEnd(text, start);
      tokens += countTokens(text.slice(start, end), asText);
      start = end;
    }
    await new Promise((resolve) => setTimeout(resolve, 0));
    if (id !== latestId) return;
    if (start < text.length) report({ id, tokens, share: start / text.length });
  }
  report({ id, tokens, share: 1 });
}

const report = (progress: CountProgress): void => postMessage(progress);

addEventListener('message', ({ data }: MessageEvent<CountRequest>) => {
  latestId = data.id;
  // A failure is reported as the worker's error.
  count(data).catch((error: unknown) => {
    setTimeout(() => {
      throw error;
    });
  });
});
