import { QueryClientProvider } from '@tanstack/preact-query';
import { useEffect, useState } from 'preact/hooks';
import { Router } from 'wouter-preact';
import { forgetDrafts } from '../lib/draft.ts';
import { askToLeave } from '../lib/leave-guard.ts';
import type { FrameProps, LoadedPage } from '../lib/pages.ts';
import { queryClient } from '../lib/queries.ts';
import { selectAccount } from '../lib/selected-account.ts';
import { onSessionEnd, useSession } from '../lib/session.ts';
import { SiteLocation } from '../lib/site-location.ts';
import { forgetTabStores } from '../lib/tab-store.ts';
import { Toasts } from '../ui/toast.tsx';
import { Footer } from './footer.tsx';
import { Header } from './header.tsx';
import { PageView } from './page-view.tsx';
import { OfflineNote, SkipLink } from './notes.tsx';

/** The whole application: the frame, and the page at the current path in it. */
export function App({ first }: { readonly first: LoadedPage }) {
  useEffect(
    () =>
      onSessionEnd((end) => {
        selectAccount(null);
        queryClient.clear();
        // After another end, the same user may go on with it.
        if (end !== 'chosen') return;
        forgetTabStores(null);
        forgetDrafts();
      }),
    [],
  );
  const [site] = useState(() => new SiteLocation());
  const Frame = first.Frame ?? SiteFrame;
  const userId = useSession().user?.id ?? null;
  useEffect(() => {
    // What this tab keeps may be of somebody else, who did not sign out.
    if (userId !== null) forgetTabStores(userId);
  }, [userId]);
  return (
    <QueryClientProvider client={queryClient}>
      <Router
        hook={site.usePath}
        searchHook={site.useSearch}
        aroundNav={(navigate, to, options) => askToLeave(() => navigate(to, options))}
      >
        <Frame first={first} />
        <Toasts />
      </Router>
    </QueryClientProvider>
  );
}

/** What stands around the pages of customers. */
const SiteFrame = ({ first }: FrameProps) => (
  <>
    <SkipLink />
    <Header />
    <OfflineNote />
    <PageView first={first} />
    <Footer />
  </>
);
