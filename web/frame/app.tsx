import { QueryClientProvider } from '@tanstack/preact-query';
import { useEffect } from 'preact/hooks';
import { Router } from 'wouter-preact';
import { mayLeave } from '../lib/leave-guard.ts';
import type { LoadedPage } from '../lib/pages.ts';
import { queryClient } from '../lib/queries.ts';
import { selectAccount } from '../lib/selected-account.ts';
import { onSessionEnd } from '../lib/session.ts';
import { Toasts } from '../ui/toast.tsx';
import { Footer } from './footer.tsx';
import { Header } from './header.tsx';
import { PageView } from './page-view.tsx';
import { OfflineNote, SkipLink } from './notes.tsx';

/** The whole application: the frame, and the page at the current path in it. */
export function App({ first }: { readonly first: LoadedPage }) {
  useEffect(
    () =>
      onSessionEnd(() => {
        selectAccount(null);
        queryClient.clear();
      }),
    [],
  );
  return (
    <QueryClientProvider client={queryClient}>
      <Router
        aroundNav={(navigate, to, options) => {
          if (mayLeave()) navigate(to, options);
        }}
      >
        <SkipLink />
        <Header />
        <OfflineNote />
        <PageView first={first} />
        <Footer />
        <Toasts />
      </Router>
    </QueryClientProvider>
  );
}
