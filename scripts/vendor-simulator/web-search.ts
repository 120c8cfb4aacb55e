import { countWords } from './count-words.ts';

/** A result that the simulated model finds for every search. */
export interface SearchResult {
  readonly url: string;
  readonly title: string;
  readonly text: string;
}

export const SEARCH_RESULTS: readonly SearchResult[] = [
  { url: 'https://search.example/first', title: 'The first page', text: 'What the first page says of it.' },
  { url: 'https://search.example/second', title: 'The second page', text: 'What the second page adds.' },
];

/** The tokens of the search results, for vendors that count them as input. */
export const SEARCH_TOKENS = SEARCH_RESULTS.reduce(
  (total, { title, text }) => total + countWords(title) + countWords(text),
  0,
);

/**
 * Returns the index of the first piece that is based on search results. With several pieces, it is never the first one,
 * so that positions differ from lengths and code that confuses them fails.
 */
export function findCitedFrom(pieces: readonly string[]): number {
  return pieces.length > 1 ? 1 : 0;
}
