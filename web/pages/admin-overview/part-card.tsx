import type { ComponentChildren } from 'preact';
import { useMessages } from '../../lib/language.tsx';
import { Card } from '../../ui/card.tsx';
import { Skeleton } from '../../ui/states.tsx';
import type en from './messages.en.ts';

/** A part of the overview; in its place, that it is loading or could not be read. */
export function PartCard<Data>({
  id,
  title,
  data,
  lines,
  children,
}: {
  /** For links to it. */
  readonly id?: string;
  readonly title: string;
  /** Undefined while it is loading, null if it could not be read. */
  readonly data: Data | null | undefined;
  /** How high it is while it is loading: lines of a table. */
  readonly lines: number;
  readonly children: (data: Data) => ComponentChildren;
}) {
  const t = useMessages<typeof en>();
  return (
    <div id={id} class="admin-overview-part">
      <Card title={title}>
        {data === undefined ? (
          <Skeleton lines={lines} height="1.75rem" />
        ) : data === null ? (
          <p class="admin-overview-unread">{t('unread')}</p>
        ) : (
          children(data)
        )}
      </Card>
    </div>
  );
}
