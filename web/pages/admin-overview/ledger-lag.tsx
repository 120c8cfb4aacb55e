import { SiteLink } from '../../frame/site-link.tsx';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Badge } from '../../ui/card.tsx';
import { deadEntriesHref } from './hrefs.ts';
import type en from './messages.en.ts';
import type { Overview } from './use-overview.ts';

/** How far the ledger in MongoDB is behind. */
export function LedgerLag({ ledger }: { readonly ledger: NonNullable<Overview['ledger']> }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { waiting, lag_seconds: lag, is_behind: isBehind, dead } = ledger;
  return (
    <dl class="admin-overview-processes">
      <div>
        <dt>{t('lag')}</dt>
        <dd>
          <span class="admin-overview-value">{format.duration(lag)}</span>
          <span class="admin-overview-note">
            <Badge tone={isBehind ? 'bad' : 'good'}>{t(isBehind ? 'behind' : 'keepsUp')}</Badge>
          </span>
        </dd>
      </div>
      <div>
        <dt>{t('unwritten')}</dt>
        <dd>
          <span class="admin-overview-value">{format.number(waiting)}</span>
        </dd>
      </div>
      {dead > 0 && (
        <div>
          <dt>{t('dead')}</dt>
          <dd>
            <SiteLink href={deadEntriesHref}>{format.number(dead)}</SiteLink>
          </dd>
        </div>
      )}
    </dl>
  );
}
