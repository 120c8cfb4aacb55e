import type { UpstreamTarget } from '../upstream.ts';

export type ThinkingLevel = 'MINIMAL' | 'LOW' | 'MEDIUM' | 'HIGH';

/** What a model's name tells of how it must be asked. */
export interface GeminiTraits {
  /** How it is told to think; null where it cannot think, and refuses to be told. */
  readonly thinking: UpstreamTarget['thinking'];
  /** The levels it knows, the least first. */
  readonly levels: readonly [ThinkingLevel, ...ThinkingLevel[]];
  /** The bounds of its thinking budget; 0 means that it can do without thinking. */
  readonly leastBudget: number;
  readonly mostBudget: number;
  /** Generation 3 or later: it refuses a turn of tool calls whose thought signatures are missing. */
  readonly demandsSignatures: boolean;
  readonly drawsPictures: boolean;
}

/** The generation, of `gemini-2.5-flash`, `gemini-3-pro-preview`, `gemini-3.1-flash-lite`. */
const GENERATION = /^gemini-(\d+(?:\.\d+)?)(?:-|$)/;
/** Names that Google moves on to its newest model. */
const NEWEST = /^gemini-(?:pro|flash|flash-lite)-latest$/;
const PRO = /-pro(?:-|$)/;
const IMAGE = /-image(?:-|$)/;
const SPEECH = /-tts(?:-|$)/;

/**
 * The pages on thinking of Google's documentation: generation 2.5 has budgets (Pro 128 to 32768, the others 0 to 24576),
 * later ones have levels, of which Pro lacks `MINIMAL` and 3 Pro `MEDIUM` too. A name that says nothing is taken for a
 * newer model, but not for one that needs signatures: those go only to whoever is known to ask for them.
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
