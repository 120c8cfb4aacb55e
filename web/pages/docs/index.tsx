import './docs.css';
import './reference.css';
import './search-and-try.css';
import { createPortal } from 'preact/compat';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { useLocation } from 'wouter-preact';
import type { TriedOperation } from '../../../api/pages/docs-data.ts';
import { useCommon, useLanguage } from '../../lib/language.tsx';
import { useTitle } from '../../lib/title.ts';
import { ErrorState, Skeleton } from '../../ui/states.tsx';
import { loadContent, readContent, type DocsContent } from './content.ts';
import { enhance } from './enhance.ts';
import { scrollToTarget } from './scroll-to-target.ts';
import { DocsSearch } from './search.tsx';
import { TryDialog } from './try-dialog.tsx';

export default function DocsPage() {
  const [path] = useLocation();
  const language = useLanguage();
  const { content, error, retry } = useContent(path, language);
  if (error !== null)
    return (
      <div class="page">
        <ErrorState error={error} onRetry={retry} />
      </div>
    );
  if (content === null)
    return (
      <div class="page page-loading">
        <Skeleton lines={12} />
      </div>
    );
  return <Content key={`${language} ${path}`} content={content} />;
}

function useContent(path: string, language: string) {
  const [attempt, setAttempt] = useState(0);
  const [error, setError] = useState<unknown>(null);
  const content = readContent(path, language);
  useEffect(() => {
    if (content !== null) return;
    const aborter = new AbortController();
    setError(null);
    loadContent(path, language, aborter.signal).then(
      () => setAttempt((before) => before + 1),
      (reason: unknown) => {
        if (!aborter.signal.aborted) setError(reason);
      },
    );
    return () => aborter.abort();
  }, [path, language, content === null, attempt]);
  return { content, error: content === null ? error : null, retry: () => setAttempt(attempt + 1) };
}

let hasShown = false;

/** Shows what the server has rendered, and makes it work. */
function Content({ content: { element, title } }: { readonly content: DocsContent }) {
  const common = useCommon();
  const [, navigate] = useLocation();
  const place = useRef<HTMLDivElement>(null);
  const [tried, setTried] = useState<TriedOperation | null>(null);
  const [copies, setCopies] = useState(0);
  useTitle(title);
  useLayoutEffect(() => {
    place.current!.replaceChildren(element);
    return enhance(element, {
      navigate,
      onTry: setTried,
      onCopied: () => setCopies((before) => before + 1),
      copied: common('copied'),
    });
  }, [element]);
  useEffect(() => {
    // The browser has scrolled what came with the HTML.
    if (hasShown) scrollToTarget(element);
    hasShown = true;
  }, [element]);
  return (
    <>
      <div ref={place} class="docs-page" />
      {createPortal(<DocsSearch navigate={navigate} />, element.querySelector('.docs-search')!)}
      <p class="unseen" role="status" key={copies}>
        {copies > 0 ? common('copied') : ''}
      </p>
      {tried !== null && <TryDialog operation={tried} onClose={() => setTried(null)} />}
    </>
  );
}
