import { useEffect, useLayoutEffect } from 'preact/hooks';
import { Button } from '../ui/button.tsx';
import type { CursorList } from './cursor-list.tsx';
import { useConsole } from './texts.ts';

/** Buttons of a dialog that go through the list that it is about, also by the arrow keys. */
export function ListTurn({
  id,
  list,
  onTurn,
}: {
  /** Of the row that is shown. */
  readonly id: string;
  readonly list: CursorList<{ readonly id: string }>;
  readonly onTurn: (id: string) => void;
}) {
  const t = useConsole();
  const { rows = [], hasMore, isFetchingMore, fetchMore } = list;
  const at = rows.findIndex((row) => row.id === id);
  const [before, after] = at === -1 ? [undefined, undefined] : [rows[at - 1]?.id, rows[at + 1]?.id];
  const isLast = at !== -1 && after === undefined;
  useEffect(() => {
    if (isLast && hasMore && !isFetchingMore) fetchMore();
  }, [isLast, hasMore]);
  // At once, so that keys pressed one after the other each turn from what the one before led to.
  useLayoutEffect(() => {
    const turn = (event: KeyboardEvent): void => {
      const target = { ArrowLeft: before, ArrowRight: after }[event.key];
      const isOther = event.altKey || event.ctrlKey || event.metaKey || event.shiftKey;
      if (target === undefined || isOther || scrollsSideways(event.target)) return;
      event.preventDefault();
      onTurn(target);
    };
    document.addEventListener('keydown', turn);
    return () => document.removeEventListener('keydown', turn);
  }, [before, after]);
  return (
    <>
      <Button
        kind="quiet"
        icon="left"
        aria-label={t('newerRow')}
        title={`${t('newerRow')} (←)`}
        aria-disabled={before === undefined}
        onClick={() => before !== undefined && onTurn(before)}
      />
      <Button
        kind="quiet"
        icon="right"
        aria-label={t('olderRow')}
        title={`${t('olderRow')} (→)`}
        aria-disabled={after === undefined}
        onClick={() => after !== undefined && onTurn(after)}
      />
    </>
  );
}

/** Whether the keys move something within what has the focus. */
const scrollsSideways = (target: EventTarget | null): boolean =>
  target instanceof HTMLInputElement ||
  (target instanceof HTMLElement && target.scrollWidth > target.clientWidth && target.tabIndex === 0);
