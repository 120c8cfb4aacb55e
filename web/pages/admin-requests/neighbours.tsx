import { useQuery } from '@tanstack/preact-query';
import { SiteLink } from '../../frame/site-link.tsx';
import { readRequests } from '../../admin/read-requests.ts';
import { RequestTable, type AdminRequest } from '../../admin/request-table.tsx';
import { useMessages } from '../../lib/language.tsx';
import { QueryView, Skeleton } from '../../ui/states.tsx';
import type en from './messages.en.ts';
import { useRequestFilter } from './request-filter.ts';

const minutesAround = 10;
const maxShown = 10;

const moveBy = (time: string, minutes: number): string =>
  new Date(Date.parse(time) + minutes * 60_000).toISOString();

/** What else the account sent around that time. */
export function Neighbours({ row: { id, account, created_at: time } }: { readonly row: AdminRequest }) {
  const t = useMessages<typeof en>();
  const { hrefOf, hrefOfList } = useRequestFilter();
  const around = { account, since: moveBy(time, -minutesAround), until: moveBy(time, minutesAround) };
  const query = useQuery({
    queryKey: ['requests-around', id],
    // One of them is this one.
    queryFn: ({ signal }) => readRequests({ ...around, limit: maxShown + 1 }, signal),
    staleTime: 60_000,
  });
  return (
    <section class="admin-requests-part">
      <h3>{t('around', { minutes: minutesAround })}</h3>
      <QueryView query={query} loading={<Skeleton lines={3} height="2rem" />}>
        {({ data, has_more: hasMore }) => {
          const others = data.filter((other) => other.id !== id).slice(0, maxShown);
          return others.length === 0 ? (
            <p class="soft small">{t('noneAround')}</p>
          ) : (
            <>
              <RequestTable rows={others} hrefOf={hrefOf} isBrief />
              {hasMore && (
                <p class="small">
                  <SiteLink href={hrefOfList(around)}>{t('allAround')}</SiteLink>
                </p>
              )}
            </>
          );
        }}
      </QueryView>
    </section>
  );
}
