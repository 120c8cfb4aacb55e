import type { ComponentChildren } from 'preact';
import { ApiError, describeError } from '../lib/api-error.ts';
import { useCommon, useLanguage } from '../lib/language.tsx';
import { Button } from './button.tsx';

/** What to see where there is nothing yet: why, and what to do next. */
export const EmptyState = ({
  title,
  children,
  action,
}: {
  readonly title: string;
  readonly children?: ComponentChildren;
  readonly action?: ComponentChildren;
}) => (
  <div class="empty">
    <p class="empty-title">{title}</p>
    {children !== undefined && <div class="empty-text">{children}</div>}
    {action}
  </div>
);

/** What went wrong, and a button to try again. */
export function ErrorState({
  error,
  onRetry,
}: {
  readonly error: unknown;
  readonly onRetry?: () => unknown;
}) {
  const language = useLanguage();
  const common = useCommon();
  const requestId = error instanceof ApiError ? error.requestId : null;
  return (
    <div class="empty" role="alert">
      <p class="empty-title">{common('failed')}</p>
      <div class="empty-text">
        <p>{describeError(error, language)}</p>
        {requestId !== null && (
          <p class="request-id">
            {common('requestId')} <code>{requestId}</code>
          </p>
        )}
      </div>
      {onRetry !== undefined && (
        <Button icon="refresh" onClick={() => onRetry()}>
          {common('retry')}
        </Button>
      )}
    </div>
  );
}

/** A line of text about a form or an action that failed. */
export function ErrorText({ error }: { readonly error: unknown }) {
  const language = useLanguage();
  return (
    <p class="error-text" role="alert">
      {error === null || error === undefined ? null : describeError(error, language)}
    </p>
  );
}

/** Takes the place of content that is loading. Give it the height of what will come, so that nothing moves. */
export const Skeleton = ({ lines = 3, height }: { readonly lines?: number; readonly height?: string }) => {
  const common = useCommon();
  return (
    <div class="skeleton" role="status" aria-label={common('loading')}>
      {Array.from({ length: lines }, (_, i) => (
        <span key={i} class="skeleton-line" style={height === undefined ? undefined : { height }} />
      ))}
    </div>
  );
};

interface QueryLike<Data> {
  readonly data: Data | undefined;
  readonly error: unknown;
  readonly refetch: () => unknown;
}

/** Shows what a query read, or that it is loading or failed. Data that was read before stays when a refresh fails. */
export function QueryView<Data>({
  query,
  loading,
  children,
}: {
  readonly query: QueryLike<Data>;
  readonly loading?: ComponentChildren;
  readonly children: (data: Data) => ComponentChildren;
}) {
  if (query.data !== undefined) return <>{children(query.data)}</>;
  if (query.error !== null && query.error !== undefined)
    return <ErrorState error={query.error} onRetry={query.refetch} />;
  return <>{loading ?? <Skeleton />}</>;
}
