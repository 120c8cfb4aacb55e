import { useQuery } from '@tanstack/preact-query';
import { useState } from 'preact/hooks';
import { adminApi, call, type Schema } from '../../admin/api.ts';
import { useMay } from '../../admin/session.ts';
import { SiteLink } from '../../frame/site-link.tsx';
import { useMessages } from '../../lib/language.tsx';
import { Button } from '../../ui/button.tsx';
import { Time } from '../../ui/money.tsx';
import { QueryView, Skeleton } from '../../ui/states.tsx';
import type en from './messages.en.ts';
import { RevokeBatch } from './revoke.tsx';

/** The codes that one call created: who made them, and a button that revokes all of them. */
export function BatchCard({ batch, onLeave }: { readonly batch: string; readonly onLeave: () => void }) {
  const t = useMessages<typeof en>();
  const mayRevoke = useMay('billing');
  const [isRevoking, setIsRevoking] = useState(false);
  return (
    <section class="card admin-codes-batch" aria-label={t('batch')}>
      <div>
        <h2>
          {t('batch')} <code>{batch}</code>
        </h2>
        <Maker batch={batch} />
      </div>
      <div class="admin-codes-actions">
        <Button onClick={onLeave}>{t('allBatches')}</Button>
        {mayRevoke && <Button onClick={() => setIsRevoking(true)}>{t('revokeAll')}</Button>}
      </div>
      {isRevoking && <RevokeBatch batch={batch} onClose={() => setIsRevoking(false)} />}
    </section>
  );
}

function Maker({ batch }: { readonly batch: string }) {
  const resource = `code:${batch}`;
  const query = useQuery({
    queryKey: ['audit', 'maker', resource],
    queryFn: async ({ signal }) => {
      const { data } = await call(
        adminApi.GET('/v1/admin/audit', { params: { query: { resource, limit: 100 } }, signal }),
      );
      // The newest comes first, and a repeated call is in the log, too.
      return data.findLast(({ action }) => action === 'code.create') ?? null;
    },
  });
  return (
    <QueryView query={query} loading={<Skeleton lines={1} height="1.45rem" />}>
      {(event) => <MakerText event={event} resource={resource} />}
    </QueryView>
  );
}

function MakerText({
  event,
  resource,
}: {
  readonly event: Schema<'AdminAuditEvent'> | null;
  readonly resource: string;
}) {
  const t = useMessages<typeof en>();
  const link = (
    <SiteLink key="link" href={`/admin/audit?resource=${encodeURIComponent(resource)}`}>
      {t('inAudit')}
    </SiteLink>
  );
  return (
    <p class="soft small">
      {event === null
        ? t('madeEarlier')
        : t.nodes('madeBy', {
            token: <strong key="token">{event.token}</strong>,
            time: <Time key="time" value={event.at} />,
          })}{' '}
      {link}
    </p>
  );
}
