import type { ComponentChildren } from 'preact';
import type { AdminRequest } from '../../admin/request-table.tsx';
import { useCommon, useMessages } from '../../lib/language.tsx';
import { Badge } from '../../ui/card.tsx';
import { Reason } from '../../ui/reason.tsx';
import { FailureBadge, cancelledStatus } from '../../ui/request-outcome.tsx';
import type en from './messages.en.ts';

/** What the customer was told, beside what the vendor said. */
export const Causes = ({ row }: { readonly row: AdminRequest }) => (
  <section class="admin-requests-causes">
    <CustomerSide row={row} />
    <VendorSide row={row} />
  </section>
);

const Side = ({ title, children }: { readonly title: string; readonly children: ComponentChildren }) => (
  <div class="admin-requests-side">
    <h3>{title}</h3>
    {children}
  </div>
);

function CustomerSide({ row: { outcome, status, code, details } }: { readonly row: AdminRequest }) {
  const t = useMessages<typeof en>();
  const common = useCommon();
  const isCancelled = status === cancelledStatus;
  return (
    <Side title={t('forCustomer')}>
      <p class="admin-requests-badges">
        {outcome === 'success' ? (
          <Badge tone="good">{common('succeeded')}</Badge>
        ) : (
          <FailureBadge code={status ?? 500} isRejected={outcome === 'rejected'} />
        )}
        {code !== null && !isCancelled && <code>{code}</code>}
      </p>
      {isCancelled && <p>{t('cancelledText')}</p>}
      {!isCancelled && details !== null && (
        <div class="admin-requests-text">
          <Reason code={code} message={details} />
        </div>
      )}
    </Side>
  );
}

function VendorSide({ row }: { readonly row: AdminRequest }) {
  const t = useMessages<typeof en>();
  const { outcome, attempts, lines } = row;
  const failed = attempts.findLast(({ reason }) => reason !== null) ?? null;
  const last = attempts.at(-1) ?? null;
  return (
    <Side title={t('fromVendor')}>
      {last === null ? (
        <p class="soft">
          {t(outcome === 'rejected' ? 'wasRejected' : lines === null ? 'noCalls' : 'callsOfLines')}
        </p>
      ) : (
        <>
          <p class="admin-requests-badges">
            {failed === null ? (
              <Badge tone="good">{last.status ?? t('noStatus')}</Badge>
            ) : (
              <Badge tone="bad">{failed.status ?? t('noStatus')}</Badge>
            )}
            <span>{(failed ?? last).upstream}</span>
          </p>
          <p class="admin-requests-text">{failed === null ? t('noFailures') : failed.reason}</p>
          {failed !== null && failed !== last && last.reason === null && (
            <p class="small soft">{t('thenAnswered', { upstream: last.upstream })}</p>
          )}
        </>
      )}
    </Side>
  );
}
