import type { UpstreamTarget } from '../upstream.ts';

export type ThinkingLevel = 'MINIMAL' | 'LOW' | 'MEDIUM' | 'HIGH';

/** How a model must be called, derived from its name. */
export interface GeminiTraits {
  /** How the model is told to think; null if it cannot think and rejects the setting. */
  readonly thinking: UpstreamTarget['thinking'];
  /** The levels it supports, lowest first. */
  readonly levels: readonly [ThinkingLevel, ...ThinkingLevel[]];
  /** The limits of its thinking budget; 0 means that it can work without thinking. */
  readonly leastBudget: number;
  readonly mostBudget: number;
  /** Generation 3 or later: it rejects a turn of tool calls whose thought signatures are missing. */
  readonly demandsSignatures: boolean;
  readonly drawsPictures: boolean;
}

/** Matches the generation in `gemini-2.5-flash`, `gemini-3-pro-preview`, `gemini-3.1-flash-lite`. */
const GENERATION = /^gemini-(\d+(?:\.\d+)?)(?:-|$)/;
/** Aliases that Google moves to its newest model. */
const NEWEST = /^gemini-(?:pro|flash|flash-lite)-latest$/;
const PRO = /-pro(?:-|$)/;
const IMAGE = /-image(?:-|$)/;
const SPEECH = /-tts(?:-|$)/;

/**
 * Reads the traits from the name. According to Google's documentation on thinking, generation 2.5 has budgets
 * (Pro 128 to 32768, the others 0 to 24576). Later ones have levels, of which Pro lacks `MINIMAL` and 3 Pro
 * lacks `MEDIUM` too. An unknown name counts as a newer model, but not as one that needs signatures: those are
 * only sent to models known to require them.
 */
export function readTraits(model: string): GeminiTraits {
  const name = model.slice(model.lastIndexOf('/') + 1).toLowerCase();
  const generation = NEWEST.test(name) ? Infinity : Number(GENERATION.exec(name)?.[1] ?? Number.NaN);
  const isPro = PRO.test(name);
  const drawsPictures = IMAGE.test(name);
  return {
    thinking: readThinking(generation, { isMute: SPEECH.test(name), drawsPictures }),
    levels: isPro
      ? generation === 3
        ? ['LOW', 'HIGH']
        : ['LOW', 'MEDIUM', 'HIGH']
      : ['MINIMAL', 'LOW', 'MEDIUM', 'HIGH'],
    leastBudget: isPro ? 128 : 0,
    mostBudget: isPro ? 32_768 : 24_576,
    demandsSignatures: generation >= 3,
    drawsPictures,
  };
}

function readThinking(
  generation: number,
  { isMute, drawsPictures }: { readonly isMute: boolean; readonly drawsPictures: boolean },
): GeminiTraits['thinking'] {
  if (generation < 2.5 || isMute || (generation < 3 && drawsPictures)) {
    return null;
  }
  return generation < 3 ? 'budget' : 'effort';
}
