import { countWords } from './count-words.ts';

/** What the simulated model finds whatever it looks for. */
export interface SearchResult {
  readonly url: string;
  readonly title: string;
  readonly text: string;
}

export const SEARCH_RESULTS: readonly SearchResult[] = [
  { url: 'https://search.example/first', title: 'The first page', text: 'What the first page says of it.' },
  { url: 'https://search.example/second', title: 'The second page', text: 'What the second page adds.' },
];

/** What reading them costs, where a vendor counts that as input. */
export const SEARCH_TOKENS = SEARCH_RESULTS.reduce(
  (total, { title, text }) => total + countWords(title) + countWords(text),
  0,
);

/**
 * The pieces from which on an answer rests on what was found: all but the first, so that places in the text are told
 * from its beginning and those who take them for lengths are found out.
 */
export function findCitedFrom(pieces: readonly string[]): number {
  return pieces.length > 1 ? 1 : 0;
}
