import { useState } from 'preact/hooks';
import { adminApi, call, type Schema } from '../../admin/api.ts';
import { ConfirmAction } from '../../admin/confirm-action.tsx';
import { readEffects, toCall, type CallPurpose } from '../../admin/dry-run.ts';
import { QuickAction } from '../../admin/quick-action.tsx';
import { useLanguage, useMessages } from '../../lib/language.tsx';
import { Button } from '../../ui/button.tsx';
import { showToast } from '../../ui/toast.tsx';
import type en from './messages.en.ts';
import type { Breaker } from './routes.ts';
import { WorkOfModels } from './work-of-models.tsx';

interface Target {
  readonly upstream: string;
  /** Null for all models. */
  readonly model: string | null;
}

/** More are counted. */
const maxNames = 8;

function drainRoutes({ upstream: name, model }: Target, purpose: CallPurpose) {
  const { query, signal } = toCall(purpose);
  const params = { path: { name }, query };
  return call(adminApi.POST('/v1/admin/upstreams/{name}/drain', { params, body: { model }, signal }));
}

const undrainRoutes = ({ upstream: name, model }: Target) =>
  call(adminApi.POST('/v1/admin/upstreams/{name}/undrain', { params: { path: { name } }, body: { model } }));

const resetRoutes = ({ upstream: name, model }: Target) =>
  call(adminApi.POST('/v1/admin/upstreams/{name}/reset', { params: { path: { name } }, body: { model } }));

/** What can be done with a route. @param isWhole whether its whole upstream is drained, which a route cannot end */
export function RouteActions({
  route: { upstream, model, isDrained, breaker, reasons },
  isWhole,
  mayReset,
}: {
  readonly route: Target & {
    readonly isDrained: boolean;
    readonly breaker: Breaker;
    readonly reasons: readonly string[];
  };
  readonly isWhole: boolean;
  /** Whether it is worth a reset if it is not called. */
  readonly mayReset: boolean;
}) {
  const t = useMessages<typeof en>();
  const target = { upstream, model };
  return (
    <div class="admin-models-actions">
      {mayReset && (breaker !== 'closed' || reasons.length > 0) && !isDrained && <Reset target={target} />}
      {isDrained ? !isWhole && <Undrain target={target} /> : <Drain target={target} label={t('drain')} />}
    </div>
  );
}

export function Reset({ target }: { readonly target: Target }) {
  const t = useMessages<typeof en>();
  const { upstream } = target;
  return (
    <QuickAction
      size="small"
      title={t('resetHint')}
      run={() => resetRoutes(target)}
      done={t('resetDone', { upstream })}
    >
      {t('reset')}
    </QuickAction>
  );
}

export function Undrain({ target }: { readonly target: Target }) {
  const t = useMessages<typeof en>();
  const { upstream } = target;
  return (
    <QuickAction
      kind="primary"
      size="small"
      run={() => undrainRoutes(target)}
      done={t('undrainedDone', { upstream })}
    >
      {t('undrain')}
    </QuickAction>
  );
}

export function Drain({ target, label }: { readonly target: Target; readonly label: string }) {
  const t = useMessages<typeof en>();
  const [isOpen, setIsOpen] = useState(false);
  const { upstream, model } = target;
  const close = (): void => setIsOpen(false);
  return (
    <>
      <Button size="small" onClick={() => setIsOpen(true)}>
        {label}
      </Button>
      {isOpen && (
        <ConfirmAction
          title={model === null ? t('drainTitle', { upstream }) : t('drainRouteTitle', { upstream, model })}
          action={t('drainAction')}
          preview={(signal) => readEffects(drainRoutes(target, signal))}
          describe={(effects) => <DrainEffects effects={effects} />}
          run={(given) => drainRoutes(target, given)}
          onDone={() => {
            showToast(t('drainedDone', { upstream }));
            close();
          }}
          onClose={close}
        />
      )}
    </>
  );
}

function DrainEffects({ effects }: { readonly effects: Schema<'DryRunOfDrainedUpstream'>['effects'] }) {
  const t = useMessages<typeof en>();
  const language = useLanguage();
  const { calls, models, models_without_route: without } = effects;
  const list = (names: readonly string[]): string => {
    const more = names.length - maxNames;
    const shown = more > 0 ? [...names.slice(0, maxNames), t('andMore', { count: more })] : names;
    return new Intl.ListFormat(language, { type: 'unit' }).format(shown);
  };
  return (
    <>
      <p>{t('drainText')}</p>
      {calls > 0 && <p>{t('callsRun', { count: calls })}</p>}
      {models.length > 0 && <p>{t('modelsAffected', { count: models.length, models: list(models) })}</p>}
      {without.length > 0 && (
        <p>
          <strong>{t('modelsWithout', { count: without.length, models: list(without) })}</strong>
        </p>
      )}
      <WorkOfModels work={effects} />
    </>
  );
}
