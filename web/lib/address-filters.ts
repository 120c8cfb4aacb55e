import { useCallback } from 'preact/hooks';
import { useSearchParams } from 'wouter-preact';

/** Null removes a filter. */
export type FilterChanges = Readonly<Record<string, string | null>>;

/** Copies filters and changes some. */
function changeFilters(filters: URLSearchParams, changes: FilterChanges): URLSearchParams {
  const next = new URLSearchParams(filters);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) next.delete(name);
    else next.set(name, value);
  }
  return next;
}

/** The address of a page with filters. @param filters those to begin with, such as of what the page shows now */
export const hrefWith = (path: string, changes: FilterChanges, filters = new URLSearchParams()): string =>
  `${path}?${changeFilters(filters, changes)}`;

/**
 * The filters of a page, which are in the address bar, so that a link or a reload shows the same. A change replaces the
 * address: "back" leaves the page.
 * @returns the filters, and a function that changes some
 */
export function useAddressFilters(): readonly [URLSearchParams, (changes: FilterChanges) => void] {
  const [filters, setFilters] = useSearchParams();
  const change = useCallback(
    (changes: FilterChanges) => {
      // Read at the time of the change: several may come before the page is rendered again.
      setFilters(changeFilters(new URLSearchParams(location.search), changes), { replace: true });
    },
    [setFilters],
  );
  return [filters, change];
}
