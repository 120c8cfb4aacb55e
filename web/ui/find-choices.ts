import type { SearchedChoice } from './combobox.tsx';

export interface FoundChoice {
  readonly choice: SearchedChoice;
  /** The term by which it was found; null if its label shows why. */
  readonly term: string | null;
}

/** As people type: without ё, and with any mark between words. */
const simplify = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll('ё', 'е')
    .replaceAll(/[-_/.,\s]+/g, ' ')
    .trim();

/** How well a text fits: 0 is the text itself, 1 its start, 2 the start of one of its words, 3 a part of it. */
function rankText(text: string, wanted: string): number {
  const simple = simplify(text);
  if (simple === wanted) return 0;
  if (simple.startsWith(wanted)) return 1;
  if (simple.includes(` ${wanted}`)) return 2;
  return simple.includes(wanted) ? 3 : Infinity;
}

/** Returns the choices that fit what was typed, the best ones first. */
export function findChoices(choices: readonly SearchedChoice[], typed: string): readonly FoundChoice[] {
  const wanted = simplify(typed);
  if (wanted === '') return choices.map((choice) => ({ choice, term: null }));
  return choices
    .map((choice) => rankChoice(choice, wanted))
    .filter(({ rank }) => rank < Infinity)
    .sort((one, other) => one.rank - other.rank);
}

function rankChoice(choice: SearchedChoice, wanted: string): FoundChoice & { readonly rank: number } {
  let best: FoundChoice & { readonly rank: number } = {
    choice,
    term: null,
    rank: rankText(choice.label, wanted),
  };
  for (const term of choice.terms ?? []) {
    const rank = rankText(term, wanted);
    if (rank < best.rank) best = { choice, term: choice.label.includes(term) ? null : term, rank };
  }
  return best;
}
