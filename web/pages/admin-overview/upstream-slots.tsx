import { SiteLink } from '../../frame/site-link.tsx';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Badge } from '../../ui/card.tsx';
import { upstreamHref } from './hrefs.ts';
import type en from './messages.en.ts';
import type { Overview } from './use-overview.ts';

type Upstream = NonNullable<Overview['upstreams']>[number];

/** How many calls run at each upstream, of those that may. */
export function UpstreamSlots({ upstreams }: { readonly upstreams: readonly Upstream[] }) {
  const t = useMessages<typeof en>();
  if (upstreams.length === 0) return <p class="soft">{t('noUpstreams')}</p>;
  return (
    <ul class="admin-overview-slots">
      {upstreams.map((upstream) => (
        <Slots key={upstream.name} upstream={upstream} />
      ))}
    </ul>
  );
}

function Slots({ upstream }: { readonly upstream: Upstream }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { name, slots, slots_used: used } = upstream;
  const share = slots === 0 ? 0 : Math.min(1, used / slots);
  const text = t('slotsOf', { used: format.number(used), slots: format.number(slots) });
  return (
    <li>
      <span class="admin-overview-upstream">
        <SiteLink href={upstreamHref(name)}>{name}</SiteLink>
        <States upstream={upstream} />
      </span>
      <span class="admin-overview-count">{text}</span>
      <span
        class={`admin-overview-bar ${share === 1 ? 'full' : ''}`}
        role="meter"
        aria-label={`${name}: ${text}`}
        aria-valuemin={0}
        aria-valuemax={Math.max(slots, 1)}
        aria-valuenow={Math.min(used, slots)}
      >
        <span style={{ width: `${share * 100}%` }} />
      </span>
    </li>
  );
}

function States({ upstream }: { readonly upstream: Upstream }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { open_breakers: open, breaker, drained, drained_models: models, refused_keys: refused } = upstream;
  return (
    <>
      {open > 0 && <Badge tone="bad">{t(breaker === 'half-open' ? 'badgeHalfOpen' : 'badgeOpen')}</Badge>}
      {(refused ?? 0) > 0 && <Badge tone="bad">{t('badgeKeys', { count: refused ?? 0 })}</Badge>}
      {upstream.cooldown_seconds > 0 && (
        <Badge tone="warning">
          {t('badgeCooldown', { time: format.duration(upstream.cooldown_seconds) })}
        </Badge>
      )}
      {(drained || models.length > 0) && (
        <Badge>{drained ? t('badgeDrained') : t('badgePartlyDrained')}</Badge>
      )}
    </>
  );
}
