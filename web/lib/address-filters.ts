import { useCallback } from 'preact/hooks';
import { useSearchParams } from 'wouter-preact';

export type FilterChanges = Readonly<Record<string, string | null>>;

/**
 * The filters of a page, which are in the address bar, so that a link or a reload shows the same. A change replaces the
 * address: "back" leaves the page.
 * @returns the filters, and a function that changes some; null removes one
 */
export function useAddressFilters(): readonly [URLSearchParams, (changes: FilterChanges) => void] {
  const [filters, setFilters] = useSearchParams();
  const change = useCallback(
    (changes: FilterChanges) => {
      // Read at the time of the change: several may come before the page is rendered again.
      const next = new URLSearchParams(location.search);
      for (const [name, value] of Object.entries(changes)) {
        if (value === null) next.delete(name);
        else next.set(name, value);
      }
      setFilters(next, { replace: true });
    },
    [setFilters],
  );
  return [filters, change];
}
