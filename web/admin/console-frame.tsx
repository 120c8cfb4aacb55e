import './console.css';
import { QueryClientProvider } from '@tanstack/preact-query';
import { useEffect, useLayoutEffect } from 'preact/hooks';
import { Footer } from '../frame/footer.tsx';
import { OfflineNote, SkipLink } from '../frame/notes.tsx';
import { PageView } from '../frame/page-view.tsx';
import type { FrameProps } from '../lib/pages.ts';
import { LaterDialog } from '../ui/later-dialog.tsx';
import { Skeleton } from '../ui/states.tsx';
import { consoleQueries } from './api.ts';
import { ConsoleHeader } from './console-header.tsx';
import { SignInForm, SignInPage } from './sign-in.tsx';
import { startConsoleSession, useConsoleSession } from './session.ts';
import { useConsole } from './texts.ts';

/** What stands around the pages of the operator's console: their header, and the sign-in before them. */
export function ConsoleFrame({ first }: FrameProps) {
  const { status } = useConsoleSession();
  useLayoutEffect(() => document.documentElement.classList.add('console'), []);
  useEffect(() => {
    startConsoleSession().catch(() => undefined);
  }, []);
  useEffect(() => {
    if (status === 'none') consoleQueries.clear();
  }, [status]);
  return (
    <QueryClientProvider client={consoleQueries}>
      <SkipLink />
      <ConsoleHeader />
      <OfflineNote />
      {status === 'unknown' && <Starting />}
      {status === 'none' && <SignInPage />}
      {(status === 'active' || status === 'ended') && <PageView first={first} />}
      <SessionEnded isOpen={status === 'ended'} />
      <Footer />
    </QueryClientProvider>
  );
}

const Starting = () => (
  <main id="main" tabIndex={-1}>
    <div class="page page-loading">
      <Skeleton lines={6} />
    </div>
  </main>
);

/** The page stays below, with what was typed in it. */
function SessionEnded({ isOpen }: { readonly isOpen: boolean }) {
  const t = useConsole();
  return (
    <LaterDialog title={t('endedTitle')} isOpen={isOpen} onClose={() => undefined} size="small" isGuarded>
      <p>{t('endedText')}</p>
      <SignInForm onDone={() => consoleQueries.invalidateQueries()} />
    </LaterDialog>
  );
}
