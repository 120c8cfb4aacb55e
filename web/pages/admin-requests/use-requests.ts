import { useRef } from 'preact/hooks';
import { useCursorList } from '../../admin/cursor-list.tsx';
import { readRequests } from '../../admin/read-requests.ts';
import { useFormat } from '../../lib/format.ts';
import { selectAt, type RequestFilter, type Selection } from './request-filter.ts';

const pageSize = 50;

/** Reads the requests that the filters select. Each page says what selected it: a file has the same. */
export function useRequests(filter: RequestFilter) {
  const { timeZone } = useFormat();
  // Periods that end now begin at the same time on all pages.
  const selected = useRef<Selection>({});
  return useCursorList(['requests', filter], async (after, signal) => {
    if (after === null) selected.current = selectAt(filter, Date.now(), timeZone);
    const selection = selected.current;
    const query = { ...selection, limit: pageSize, ...(after === null ? {} : { after }) };
    return { ...(await readRequests(query, signal)), selection };
  });
}
