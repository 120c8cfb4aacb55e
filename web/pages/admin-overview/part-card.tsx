import type { ComponentChildren } from 'preact';
import { useMessages } from '../../lib/language.tsx';
import { Card } from '../../ui/card.tsx';
import { Skeleton } from '../../ui/states.tsx';
import type en from './messages.en.ts';

/** Of the heading and the edges of a part, and of a line that is loading. */
const headRem = 6;
const lineRem = 2.5;

/** A part of the overview; in its place, that it is loading or could not be read. */
export function PartCard<Data>({
  id,
  title,
  data,
  least,
  children,
}: {
  /** For links to it. */
  readonly id?: string;
  readonly title: string;
  /** Undefined while it is loading, null if it could not be read. */
  readonly data: Data | null | undefined;
  /** How high it is at least, in rem: as with usual numbers, so that nothing moves while it has none. */
  readonly least: number;
  readonly children: (data: Data) => ComponentChildren;
}) {
  const t = useMessages<typeof en>();
  return (
    <div id={id} class="admin-overview-part" style={{ minHeight: `${least}rem` }}>
      <Card title={title}>
        {data === undefined ? (
          <Skeleton lines={Math.floor((least - headRem) / lineRem)} height="1.75rem" />
        ) : data === null ? (
          <p class="admin-overview-unread">{t('unread')}</p>
        ) : (
          children(data)
        )}
      </Card>
    </div>
  );
}
