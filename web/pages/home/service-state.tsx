import { SiteLink } from '../../frame/site-link.tsx';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { useFailingCount } from '../../lib/models.ts';
import { useHealth, useSummary } from '../../lib/system.ts';
import type en from './messages.en.ts';

/** Whether the service works, and how it did today, in a line. */
export function ServiceState() {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const health = useHealth().data;
  const summary = useSummary().data;
  const failing = useFailingCount() ?? 0;
  const areOnlyModels = health?.status === 'ok' && failing > 0;
  return (
    <p class={`home-state ${areOnlyModels ? 'degraded' : (health?.status ?? '')}`}>
      <span class="home-dot" aria-hidden="true" />
      <SiteLink href="/status">
        {areOnlyModels
          ? t('modelsFail', { count: failing })
          : t(health === undefined ? 'checking' : `health_${health.status}`)}
      </SiteLink>
      {summary !== undefined && summary.total_requests > 0 && (
        <span class="soft">
          {t('served24', { count: summary.total_requests, rate: format.percent(summary.success_rate / 100) })}
        </span>
      )}
    </p>
  );
}
