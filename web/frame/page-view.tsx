import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { useLocation } from 'wouter-preact';
import { readKept, keep } from '../lib/kept.ts';
import { PageMessages, useLanguage } from '../lib/language.tsx';
import { signInHref } from '../lib/next-path.ts';
import { findPage, loadPage, readPathId, type LoadedPage } from '../lib/pages.ts';
import { useSession } from '../lib/session.ts';
import { setTitle } from '../lib/title.ts';
import { Skeleton } from '../ui/states.tsx';
import { ErrorBoundary, PageFailed } from './error-boundary.tsx';

/** Shows the page at the current path, with its own script, style and texts. */
export function PageView({ first }: { readonly first: LoadedPage }) {
  const [path, navigate] = useLocation();
  const language = useLanguage();
  const { status } = useSession();
  const page = findPage(path);
  const [loaded, setLoaded] = useState<LoadedPage | null>(first);
  const [hasFailed, setHasFailed] = useState(false);
  const isReady = loaded !== null && loaded.name === page.name && loaded.language === language;
  const mustSignIn = page.access === 'session' && status === 'none';

  useEffect(() => {
    if (mustSignIn) navigate(signInHref(), { replace: true, state: { ended: true } });
  }, [mustSignIn]);

  // Before the effects of the page, which may have a title of its own.
  useLayoutEffect(() => setTitle(page.title?.[language] ?? null), [page.name, language]);

  useEffect(() => {
    if (isReady) return;
    let isCurrent = true;
    setHasFailed(false);
    loadPage(page.name, language).then(
      (next) => {
        if (isCurrent) setLoaded(next);
      },
      () => {
        if (isCurrent && !reloadOnce()) setHasFailed(true);
      },
    );
    return () => {
      isCurrent = false;
    };
  }, [page.name, language]);

  useFocusAfterNavigation(path, isReady);
  const isSameLanguage = loaded?.name === page.name;
  return (
    <main id="main" tabIndex={-1}>
      <ErrorBoundary path={path}>
        {hasFailed ? (
          <PageFailed />
        ) : mustSignIn || !isSameLanguage ? (
          <div class="page page-loading">
            <Skeleton lines={6} />
          </div>
        ) : (
          <PageMessages catalog={loaded.catalog} language={loaded.language}>
            <loaded.Component key={page.name} id={readPathId(page, path)} />
          </PageMessages>
        )}
      </ErrorBoundary>
    </main>
  );
}

const minReloadMs = 30_000;

/** A new version of the gateway has other files. Returns false if that was tried just now. */
function reloadOnce(): boolean {
  const lastMs = Number(readKept('reloaded-at') ?? 0);
  if (!navigator.onLine || Date.now() - lastMs < minReloadMs) return false;
  keep('reloaded-at', String(Date.now()));
  location.reload();
  return true;
}

/** Begins each page at its top, and moves the focus to its heading, so that screen readers say where one is. */
function useFocusAfterNavigation(path: string, isReady: boolean): void {
  const shownPath = useRef(path);
  useEffect(() => {
    if (!isReady || shownPath.current === path) return;
    shownPath.current = path;
    scrollTo(0, 0);
    const heading = document.querySelector<HTMLElement>('#main h1');
    // A page may have moved the focus to where one types.
    const { activeElement } = document;
    const hasFocus = activeElement instanceof HTMLInputElement || activeElement === heading;
    if (heading === null || hasFocus) return;
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
  }, [path, isReady]);
}
