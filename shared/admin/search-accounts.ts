// decision 0098
import type { AccountDocument } from '../accounts/account-store.ts';
import type { WordPlace } from '../accounts/account-search-store.ts';
import { listSearchWords, readSearch } from '../accounts/search-words.ts';
import type { AdminDeps } from './admin-deps.ts';
import { toPage, type Page, type PageRequest } from './page.ts';

type Deps = Pick<AdminDeps, 'accounts'>;

const idOf = ({ _id }: AccountDocument): string => _id;

export interface AccountFilter {
  /** Only accounts that are banned, or are not. */
  readonly banned?: boolean | undefined;
}

/** Lists all accounts, newest first. */
export async function listAccounts(
  { accounts }: Deps,
  { limit, after }: PageRequest,
  { banned }: AccountFilter = {},
) {
  return toPage(await accounts.listPage(after, limit + 1, banned), limit, idOf);
}

/** The beginning of an account's id. Shorter ones would find a part of all accounts. */
const idBeginning = /^[0-9a-f][0-9a-f-]{3,35}$/;
/** Words, or accounts by their ids, that are read for one page. A search of several words may find fewer accounts among them than a page has. */
const maxWordsRead = 1_000;
/** Words that are read together if the first ones of a page do not fill it. */
const wordsPerRead = 200;

/**
 * Searches accounts by the beginning of their ids (from four characters on), and of words of their names, addresses and
 * notes. Those whose id matches the longest of several words come first, in the order of their ids, then the others in the
 * order of the word. Several words must all match. The work for a page does not grow with the number of accounts that match.
 */
export async function searchAccounts(
  deps: Deps,
  text: string,
  request: PageRequest,
  filter: AccountFilter = {},
): Promise<Page<AccountDocument>> {
  const terms = readSearch(text);
  const [longest] = terms;
  if (longest === undefined) return await listAccounts(deps, request, filter);
  const { limit, after } = request;
  const matches = (account: AccountDocument): boolean =>
    (filter.banned === undefined || account.banned === filter.banned) && matchesAll(account, terms);
  const isOfId = (accountId: string): boolean => isIdBeginning(accountId, longest);
  const isInIds = after === null || isOfId(after);
  const ofIds =
    isInIds && idBeginning.test(longest) ? await findByIds(deps, longest, matches, request) : null;
  if (ofIds?.hasMore === true) return ofIds;
  const found = [...(ofIds?.rows ?? [])];
  const isPast = after !== null && !isOfId(after);
  const start = isPast ? await findPlace(deps, after, longest) : null;
  if (isPast && start === null) return toPage(found, limit, idOf);
  return await addByWords(deps, { matches, longest, found, start, isOfId, limit });
}

const isIdBeginning = (accountId: string, term: string): boolean =>
  idBeginning.test(term) && accountId.startsWith(term);

/** Finds accounts whose ids begin with a text, and that match. */
async function findByIds(
  { accounts }: Deps,
  beginning: string,
  matches: WordSearch['matches'],
  { limit, after }: PageRequest,
): Promise<Page<AccountDocument>> {
  const found: AccountDocument[] = [];
  let last = after;
  for (let read = 0; found.length <= limit;) {
    const next = await accounts.listByIdPrefix(beginning, last, limit + 1);
    found.push(...next.filter(matches));
    last = next.at(-1)?._id ?? last;
    read += next.length;
    if (next.length <= limit) break;
    if (read >= maxWordsRead && found.length <= limit) return { rows: found, hasMore: true, lastId: last };
  }
  return toPage(found, limit, idOf);
}

interface WordSearch {
  /** Whether an account has all words, and is among those that are wanted. */
  readonly matches: (account: AccountDocument) => boolean;
  readonly longest: string;
  /** Accounts that come before those found by words. */
  readonly found: AccountDocument[];
  readonly start: WordPlace | null;
  readonly isOfId: (accountId: string) => boolean;
  readonly limit: number;
}

async function addByWords({ accounts }: Deps, search: WordSearch): Promise<Page<AccountDocument>> {
  const { matches, longest, found, start, isOfId, limit } = search;
  let place = start;
  let words = 0;
  // The last account that was at its first matching word, whether or not its other words match.
  let lastSeen: string | null = null;
  while (found.length <= limit) {
    const size = words === 0 ? limit + 1 : wordsPerRead;
    const places = await accounts.findWords(longest, place, size);
    const ids = [...new Set(places.map(({ accountId }) => accountId))];
    const documents = new Map((await accounts.findByIds(ids)).map((one) => [one._id, one]));
    for (const { word, accountId } of places) {
      const account = documents.get(accountId);
      if (account === undefined || isOfId(accountId)) continue;
      // Each account is listed at its first matching word. Outdated words are not among its words.
      if (findFirstWord(account, longest) !== word) continue;
      lastSeen = accountId;
      if (matches(account)) found.push(account);
    }
    place = places.at(-1) ?? place;
    words += places.length;
    if (places.length < size) break;
    if (words >= maxWordsRead && found.length <= limit && lastSeen !== null)
      return { rows: found, hasMore: true, lastId: lastSeen };
  }
  return toPage(found, limit, idOf);
}

function findFirstWord(account: AccountDocument, prefix: string): string | null {
  const matching = Array.from(listSearchWords(account)).filter((word) => word.startsWith(prefix));
  return matching.toSorted(compareBytes)[0] ?? null;
}

/** MongoDB compares texts by their bytes. */
const compareBytes = (one: string, other: string): number =>
  Buffer.compare(Buffer.from(one), Buffer.from(other));

function matchesAll(account: AccountDocument, terms: readonly string[]): boolean {
  const words = [...listSearchWords(account)];
  return terms.every(
    (term) => isIdBeginning(account._id, term) || words.some((word) => word.startsWith(term)),
  );
}

/** Finds the place at which an account is listed. @returns null if it no longer exists or matches */
async function findPlace({ accounts }: Deps, accountId: string, prefix: string): Promise<WordPlace | null> {
  const account = await accounts.findById(accountId);
  const word = account === null ? null : findFirstWord(account, prefix);
  return word === null ? null : { word, accountId };
}
