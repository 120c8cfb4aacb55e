import { useQuery } from '@tanstack/preact-query';
import { useEffect, useState } from 'preact/hooks';
import { useAccounts } from './accounts.ts';
import { sendRequest } from './api.ts';
import { queryClient } from './queries.ts';
import { readEvents } from './read-events.ts';
import { selectedAccount } from './selected-account.ts';
import { useStore } from './store.ts';

/** After how long a stream that broke off is opened again (ms). */
const reconnectMs = 2_000;

interface Followed<Data> {
  readonly queryKey: readonly [string, ...string[]];
  readonly read: (signal: AbortSignal) => Promise<Data>;
  /** Where its events are. The data of each is what `read` returns. */
  readonly eventsPath: string;
  readonly hasEnded: (data: Data) => boolean;
}

/**
 * Reads something, and then follows its events until it has ended. A page that is in the background has no stream open,
 * and reads again once it is seen.
 */
export function useFollowed<Data>({ queryKey, read, eventsPath, hasEnded }: Followed<Data>) {
  const query = useQuery({ queryKey, queryFn: ({ signal }) => read(signal), enabled: useIsAccountKnown() });
  const isVisible = useVisibility();
  const isFollowed = isVisible && query.data !== undefined && !hasEnded(query.data);
  useEffect(() => {
    if (!isFollowed) return;
    const abort = new AbortController();
    const take = (data: string): void => {
      const next = JSON.parse(data) as Data;
      queryClient.setQueryData(queryKey, next);
    };
    follow(eventsPath, take, abort.signal).catch(() => undefined);
    return () => abort.abort();
  }, [eventsPath, isFollowed]);
  return query;
}

/**
 * Whether calls can name the account that they are for: a new session has none until the accounts were read. Without any
 * account, the calls say so.
 */
function useIsAccountKnown(): boolean {
  const { accounts } = useAccounts();
  return useStore(selectedAccount) !== null || accounts?.length === 0;
}

/** Whether the page can be seen: background tabs would keep connections that others need. */
function useVisibility(): boolean {
  const [isVisible, setIsVisible] = useState(!document.hidden);
  useEffect(() => {
    const update = (): void => setIsVisible(!document.hidden);
    document.addEventListener('visibilitychange', update);
    return () => document.removeEventListener('visibilitychange', update);
  }, []);
  return isVisible;
}

/** Calls `take` with the data of each event, and reconnects, until there are no more or the signal is aborted. */
async function follow(path: string, take: (data: string) => void, signal: AbortSignal): Promise<void> {
  let lastId = '';
  while (!signal.aborted) {
    try {
      const headers: HeadersInit = lastId === '' ? {} : { 'last-event-id': lastId };
      const response = await sendRequest(new Request(new URL(path, location.origin), { headers, signal }));
      // Nothing follows, or what was followed is gone: reading it says so.
      if (response.status === 204 || (response.status < 500 && response.status !== 429 && !response.ok))
        return;
      if (response.ok && response.body !== null) {
        for await (const { id, data } of readEvents(response.body)) {
          // An error of the stream itself has no id.
          if (id === undefined) continue;
          lastId = id;
          take(data);
        }
      }
    } catch {
      // The connection broke off, or the page has left.
    }
    await wait(reconnectMs, signal);
  }
}

const wait = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
