import type MiniSearch from 'minisearch';
import type { SearchEntry } from '../../../api/pages/docs-data.ts';
import { ApiError } from '../../lib/api-error.ts';
import { fetchOrThrow } from '../../lib/fetch-or-throw.ts';

export type Found = Pick<SearchEntry, 'href' | 'title' | 'place'>;

const maxQueryChars = 100;
const maxFound = 12;

const indexes = new Map<string, Promise<MiniSearch<SearchEntry>>>();

/** Loads the index and the library that searches it, once for each language. @throws ApiError */
export async function loadIndex(language: string): Promise<void> {
  let index = indexes.get(language);
  if (index === undefined) {
    index = createIndex(language);
    indexes.set(language, index);
    // A failure is not kept.
    index.catch(() => indexes.delete(language));
  }
  await index;
}

async function createIndex(language: string): Promise<MiniSearch<SearchEntry>> {
  const [{ default: Search }, entries] = await Promise.all([import('minisearch'), fetchEntries(language)]);
  const index = new Search<SearchEntry>({
    idField: 'href',
    fields: ['title', 'text', 'place'],
    storeFields: ['title', 'place'],
    processTerm: stem,
    searchOptions: { combineWith: 'AND', prefix: true, boost: { title: 4 }, fuzzy: fuzzyDistance },
  });
  index.addAll(entries);
  return index;
}

async function fetchEntries(language: string): Promise<SearchEntry[]> {
  const response = await fetchOrThrow(`/docs/search.json?language=${language}`);
  if (!response.ok) throw ApiError.ofResponse(response, null);
  return (await response.json()) as SearchEntry[];
}

/** Drops the endings of Russian words, so that each form of a word finds the others. */
const stem = (term: string): string => {
  const lower = term.toLowerCase().replaceAll('ё', 'е');
  return /^[а-я]{6,}$/.test(lower) ? lower.slice(0, -2) : lower;
};

/** One wrong letter in a long word. */
const fuzzyDistance = (term: string): number => (term.length > 5 ? 1 : 0);

/** Finds what matches all words of the query, the best first. */
export async function search(query: string, language: string): Promise<Found[]> {
  const index = await indexes.get(language);
  const found = index?.search(query.slice(0, maxQueryChars)) ?? [];
  return found.slice(0, maxFound).map((one) => ({
    href: String(one.id),
    title: String(one['title']),
    place: String(one['place']),
  }));
}
