import { useState } from 'preact/hooks';
import { LastChange } from '../../admin/last-change.tsx';
import { SiteLink } from '../../frame/site-link.tsx';
import { useOperatorReasons } from '../../admin/operator-reasons.ts';
import { useMay } from '../../admin/session.ts';
import { useFormat } from '../../lib/format.ts';
import { useCommon, useMessages } from '../../lib/language.tsx';
import { modelHref } from '../../lib/models.ts';
import { useTitle } from '../../lib/title.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { Fact } from '../../ui/fact.tsx';
import { HourBars, HourTable } from '../../ui/hour-bars.tsx';
import { Notice } from '../../ui/notice.tsx';
import { EmptyState, QueryView, Skeleton } from '../../ui/states.tsx';
import type en from './messages.en.ts';
import { LastFailure } from './last-failure.tsx';
import { ModelActions } from './model-actions.tsx';
import { Prices } from './model-list.tsx';
import { useHistories } from './read-catalog.ts';
import { RouteCard } from './route-card.tsx';
import { RoutePrices } from './route-prices.tsx';
import type { ModelView } from './routes.ts';
import { SpendToday } from './spend-today.tsx';
import { StateBadge } from './state-badge.tsx';

/** Everything about a model, and what can be done with it. Its address can be sent. */
export function ModelDialog({
  id,
  query,
  onClose,
}: {
  readonly id: string;
  readonly query: {
    readonly data: readonly ModelView[] | undefined;
    readonly error: unknown;
    readonly refetch: () => unknown;
  };
  readonly onClose: () => void;
}) {
  const t = useMessages<typeof en>();
  useTitle(id);
  return (
    <Dialog title={id} isOpen onClose={onClose} size="large">
      <QueryView query={query} loading={<Skeleton lines={8} height="2.5rem" />}>
        {(views) => {
          // Links may name a model by another name of it.
          const view =
            views.find(({ model }) => model.id === id) ??
            views.find(({ model }) => model.aliases.includes(id));
          return view === undefined ? (
            <EmptyState title={t('noSuchModel')}>
              {t.nodes('noSuchModelText', { id: <code>{id}</code> })}
            </EmptyState>
          ) : (
            <ModelDetails view={view} />
          );
        }}
      </QueryView>
    </Dialog>
  );
}

function ModelDetails({ view }: { readonly view: ModelView }) {
  const t = useMessages<typeof en>();
  const common = useCommon();
  const { model, state, routes, failures } = view;
  const format = useFormat();
  const mayChange = useMay('all');
  const say = useOperatorReasons();
  return (
    <div class="admin-models-details">
      <div class="admin-models-head">
        <StateBadge state={state} />
        <span class="soft">{common(`modelType_${model.type}`)}</span>
        <SiteLink href={`/admin/requests?model=${encodeURIComponent(model.id)}`}>
          {t('showRequests')}
        </SiteLink>
        <a href={modelHref(model.id)}>{t('customerPage')}</a>
      </div>
      {state !== 'active' && (
        <Notice tone={state === 'failing' ? 'bad' : 'warning'} title={t(`state_${state}`)}>
          {state === 'failing' ? (
            <p>
              {failures === null
                ? t('stateText_failing')
                : t('mostlyFails', {
                    failed: format.number(failures.failed),
                    requests: format.number(failures.requests),
                  })}
            </p>
          ) : (
            <p>{t.nodes(`stateText_${state}`, { code: <code>model_disabled</code> })}</p>
          )}
          {model.not_served !== null && <p class="small">{t('why', { reason: say(model.not_served) })}</p>}
          {state === 'disabled' && <LastChange resource={`model:${model.id}`} />}
          {failures !== null && <LastFailure model={model.id} />}
        </Notice>
      )}
      {mayChange && <ModelActions model={model} />}
      <section>
        <h3>{t('routes')}</h3>
        {routes.length === 0 && <p class="soft">{t('noRoutes')}</p>}
        <ul class="admin-models-cards">
          {routes.map((route) => (
            <RouteCard key={route.upstream} route={route} isDisabled={state === 'disabled'} />
          ))}
        </ul>
        {routes.length > 0 && <RoutePrices model={model} routes={routes} />}
      </section>
      <section>
        <h3>
          {t('today')} <span class="soft small">{t('todayIsUtc')}</span>
        </h3>
        <SpendToday id={model.id} />
      </section>
      {/* What has no route has no history. */}
      {state !== 'unserved' && <Hours id={model.id} />}
      <dl class="facts">
        <Fact name={t('prices')}>
          <Prices model={model} />
        </Fact>
        <Context context={model.context} />
        {model.aliases.length > 0 && <Fact name={t('aliases')}>{model.aliases.join(', ')}</Fact>}
      </dl>
    </div>
  );
}

const Context = ({ context }: { readonly context: number }) => {
  const t = useMessages<typeof en>();
  return <Fact name={t('context')}>{t('contextTokens', { count: context })}</Fact>;
};

function Hours({ id }: { readonly id: string }) {
  const t = useMessages<typeof en>();
  const [isOpen, setIsOpen] = useState(false);
  const hours = useHistories().data?.[id];
  const format = useFormat();
  const [first, last] = [hours?.[0], hours?.at(-1)];
  return (
    <section>
      <h3>{t('day')}</h3>
      {hours === undefined ? <div class="hour-bars" /> : <HourBars name={id} hours={hours} />}
      <p class="admin-models-hours soft small">
        <span>{first === undefined ? '…' : format.time(first.hour)}</span>
        <span>{last === undefined ? '' : format.time(last.hour)}</span>
      </p>
      <details open={isOpen} onToggle={(event) => setIsOpen(event.currentTarget.open)}>
        <summary class="soft small">{t('byHour')}</summary>
        {isOpen && hours !== undefined && <HourTable name={id} hours={hours} />}
      </details>
    </section>
  );
}
