import { findCitedFrom, SEARCH_RESULTS } from '../web-search.ts';

/** Describes which parts of the text, in UTF-8 bytes, are based on which sources. */
export function renderGrounding(query: string, pieces: readonly string[]): object {
  const cited = pieces.slice(findCitedFrom(pieces)).join('');
  const endIndex = Buffer.byteLength(pieces.join(''));
  const startIndex = endIndex - Buffer.byteLength(cited);
  return {
    webSearchQueries: [query],
    searchEntryPoint: { renderedContent: '<div>Search suggestions</div>' },
    groundingChunks: SEARCH_RESULTS.map(({ url, title }) => ({ web: { uri: url, title } })),
    groundingSupports: [
      {
        // A segment at the start of the text omits `startIndex`.
        segment: { ...(startIndex > 0 ? { startIndex } : {}), endIndex, text: cited },
        groundingChunkIndices: SEARCH_RESULTS.map((_, index) => index),
      },
    ],
  };
}
