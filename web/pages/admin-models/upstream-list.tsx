import { LastChange } from '../../admin/last-change.tsx';
import { useOperatorReasons } from '../../admin/operator-reasons.ts';
import { useMay } from '../../admin/session.ts';
import { useFormat } from '../../lib/format.ts';
import { useAddressFilters } from '../../lib/address-filters.ts';
import { groupBy } from '../../lib/group-by.ts';
import { useMessages } from '../../lib/language.tsx';
import { Badge } from '../../ui/card.tsx';
import { Fact } from '../../ui/fact.tsx';
import { EmptyState } from '../../ui/states.tsx';
import type en from './messages.en.ts';
import { UpstreamFilter } from './model-filters.tsx';
import { OpenModel } from './open-model.tsx';
import { useUpstreams, type UpstreamState } from './read-catalog.ts';
import { Drain, Reset, Undrain } from './route-actions.tsx';
import { breakerTones, RouteBadges } from './route-badges.tsx';
import { worstBreaker, type RouteView } from './routes.ts';

/** Upstreams, with their slots, keys and models. */
export function UpstreamList({ routes }: { readonly routes: readonly RouteView[] }) {
  const t = useMessages<typeof en>();
  const [filters, change] = useAddressFilters();
  const states = useUpstreams().data;
  const groups = [...groupBy(routes, ({ upstream }) => upstream)];
  const wanted = filters.get('upstream');
  const shown = groups.filter(([name]) => wanted === null || name === wanted);
  if (groups.length === 0)
    return (
      <EmptyState title={t('noUpstreams')}>
        {t.nodes('noUpstreamsText', { command: <code>npm run -s admin -- doctor</code> })}
      </EmptyState>
    );
  return (
    <div class="admin-models-list">
      <search class="admin-models-upstream-filter">
        <UpstreamFilter
          names={groups.map(([name]) => name)}
          value={wanted}
          onChoose={(upstream) => change({ upstream })}
        />
      </search>
      <ul class="admin-models-cards">
        {shown.map(([name, own]) => (
          <UpstreamCard
            key={name}
            name={name}
            routes={own}
            state={states?.find((one) => one.name === name)}
          />
        ))}
      </ul>
    </div>
  );
}

function UpstreamCard({
  name,
  routes,
  state,
}: {
  readonly name: string;
  readonly routes: readonly RouteView[];
  /** Undefined while it is unknown. */
  readonly state: UpstreamState | undefined;
}) {
  const mayChange = useMay('all');
  const { kind, host, isUsable, isWholeDrained: isWhole, reasons } = routes[0]!;
  const say = useOperatorReasons();
  const target = { upstream: name, model: null };
  const breaker = worstBreaker(routes);
  return (
    <li class="card admin-models-upstream">
      <header class="card-head">
        <div>
          <h2>
            {name} <UpstreamBadge routes={routes} isWhole={isWhole} />
          </h2>
          <p class="soft small">
            <code>{kind}</code> {host}
          </p>
          {isWhole && <LastChange resource={`upstream:${name}`} />}
        </div>
        {mayChange && isUsable && (
          <div class="admin-models-actions">
            {(breaker !== 'closed' || (state?.cooldown_seconds ?? 0) > 0) && <Reset target={target} />}
            {isWhole ? <Undrain target={target} /> : <DrainWhole target={target} />}
          </div>
        )}
      </header>
      {isUsable ? (
        <UpstreamFacts routes={routes} state={state} />
      ) : (
        reasons.map((reason) => (
          <p key={reason} class="admin-models-reason small">
            {say(reason)}
          </p>
        ))
      )}
      <ul class="admin-models-served">
        {routes.map((route) => (
          <li key={route.model}>
            <OpenModel id={route.model} /> {isUsable && !isWhole && <RouteBadges route={route} />}
          </li>
        ))}
      </ul>
    </li>
  );
}

function DrainWhole({ target }: { readonly target: { readonly upstream: string; readonly model: null } }) {
  const t = useMessages<typeof en>();
  return <Drain target={target} label={t('drain')} />;
}

function UpstreamBadge({
  routes,
  isWhole,
}: {
  readonly routes: readonly RouteView[];
  readonly isWhole: boolean;
}) {
  const t = useMessages<typeof en>();
  const breaker = worstBreaker(routes);
  if (!routes[0]!.isUsable) return <Badge tone="bad">{t('keyless')}</Badge>;
  if (isWhole) return <Badge tone="warning">{t('drained')}</Badge>;
  if (breaker !== 'closed') return <Badge tone={breakerTones[breaker]}>{t(`breaker_${breaker}`)}</Badge>;
  if (routes.some(({ isDrained }) => isDrained)) return <Badge tone="warning">{t('partly')}</Badge>;
  return <Badge tone="good">{t('callable')}</Badge>;
}

function UpstreamFacts({
  routes,
  state,
}: {
  readonly routes: readonly RouteView[];
  readonly state: UpstreamState | undefined;
}) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { calls, max_calls: slots } = routes[0]!.keys[0]!;
  const drained = routes.filter(({ isDrained }) => isDrained).length;
  const open = routes.filter(({ breaker }) => breaker !== 'closed').length;
  const rows = Math.max(...routes.map(({ keys }) => keys.filter(({ key }) => key !== null).length));
  const say = useOperatorReasons();
  const refusal = state?.last_refusal ?? null;
  const keyNotes = [
    (state?.refused_keys ?? 0) > 0 ? t('refused', { count: state!.refused_keys! }) : null,
    (state?.cooldown_seconds ?? 0) > 0
      ? t('cooldown', { time: format.duration(state!.cooldown_seconds) })
      : null,
    refusal !== null && (state?.refused_keys ?? 0) === 0
      ? t('lastRefused', { time: format.ago(refusal.at), reason: say(refusal.reason) })
      : null,
  ].filter((note) => note !== null);
  const modelNotes = [
    drained > 0 ? t('drainedModels', { count: drained }) : null,
    open > 0 ? t('openBreakers', { count: open }) : null,
  ].filter((note) => note !== null);
  return (
    <dl class="facts admin-models-sums">
      <Fact name={t('slotsUsed')}>
        <span class="number">
          {t('ofSlots', { used: state?.slots_used ?? calls, all: state?.slots ?? slots })}
        </span>
      </Fact>
      <Fact name={t('keys')}>
        <span class="number">{format.number(state?.keys ?? rows)}</span>
        {keyNotes.length > 0 && <span class="admin-models-beside bad">{keyNotes.join(', ')}</span>}
      </Fact>
      <Fact name={t('serves')}>
        <span class="number">{format.number(routes.length)}</span>
        {modelNotes.length > 0 && <span class="admin-models-beside">{modelNotes.join(', ')}</span>}
      </Fact>
    </dl>
  );
}
