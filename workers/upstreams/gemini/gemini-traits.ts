import type { UpstreamTarget } from '../upstream.ts';

export type ThinkingLevel = 'MINIMAL' | 'LOW' | 'MEDIUM' | 'HIGH';

/** What a Gemini model supports, derived from its name. */
export interface GeminiTraits {
  /** How thinking is requested; null if the model cannot think and rejects the setting. */
  readonly thinking: UpstreamTarget['thinking'];
  /** The supported levels, lowest first. */
  readonly levels: readonly [ThinkingLevel, ...ThinkingLevel[]];
  /** The limits of the thinking budget; a minimum of 0 means that thinking can be turned off. */
  readonly minBudget: number;
  readonly maxBudget: number;
  /** Generation 3 or later rejects a turn of tool calls whose thought signatures are missing. */
  readonly requiresSignatures: boolean;
  readonly generatesImages: boolean;
}

/** Matches the generation in `gemini-2.5-flash`, `gemini-3-pro-preview`, `gemini-3.1-flash-lite`. */
const GENERATION = /^gemini-(\d+(?:\.\d+)?)(?:-|$)/;
/** Aliases that always refer to Google's newest model. */
const NEWEST = /^gemini-(?:pro|flash|flash-lite)-latest$/;
const PRO = /-pro(?:-|$)/;
const IMAGE = /-image(?:-|$)/;
const SPEECH = /-tts(?:-|$)/;

/**
 * Derives the traits from the name. According to Google's documentation on thinking, generation 2.5 has budgets (Pro
 * 128 to 32768, the others 0 to 24576). Later generations have levels; Pro does not support `MINIMAL`, and 3 Pro does
 * not support `MEDIUM` either. An unknown name is treated as a newer model, except that signatures are only sent to
 * models that are known to require them.
 */
export function readTraits(model: string): GeminiTraits {
  const name = model.slice(model.lastIndexOf('/') + 1).toLowerCase();
  const generation = NEWEST.test(name) ? Infinity : Number(GENERATION.exec(name)?.[1] ?? Number.NaN);
  const isPro = PRO.test(name);
  const generatesImages = IMAGE.test(name);
  return {
    thinking: readThinking(generation, { isSpeech: SPEECH.test(name), generatesImages }),
    levels: isPro
      ? generation === 3
        ? ['LOW', 'HIGH']
        : ['LOW', 'MEDIUM', 'HIGH']
      : ['MINIMAL', 'LOW', 'MEDIUM', 'HIGH'],
    minBudget: isPro ? 128 : 0,
    maxBudget: isPro ? 32_768 : 24_576,
    requiresSignatures: generation >= 3,
    generatesImages,
  };
}

function readThinking(
  generation: number,
  { isSpeech, generatesImages }: { readonly isSpeech: boolean; readonly generatesImages: boolean },
): GeminiTraits['thinking'] {
  if (generation < 2.5 || isSpeech || (generation < 3 && generatesImages)) {
    return null;
  }
  return generation < 3 ? 'budget' : 'effort';
}
