import { useMessages } from '../../lib/language.tsx';
import { Icon } from '../../ui/icon.tsx';
import { useFailingCount } from '../../lib/models.ts';
import type en from './messages.en.ts';
import type { Health } from '../../lib/system.ts';

const checkNames = [
  'redis',
  'workers',
  'upstreams',
  'mongodb',
  's3',
  'ledger',
  'redis_memory',
] as const satisfies readonly (keyof Health['checks'])[];

/** The state of the service in a sentence. Announced when it changes. */
export function Headline({ health }: { readonly health: Health | null }) {
  const t = useMessages<typeof en>();
  const failing = useFailingCount() ?? 0;
  const areOnlyModels = health?.status === 'ok' && failing > 0;
  return (
    <p class={`status-headline ${areOnlyModels ? 'degraded' : (health?.status ?? '')}`} role="status">
      <span class="status-dot" aria-hidden="true" />
      {health === null
        ? t('checking')
        : areOnlyModels
          ? t('modelsFail', { count: failing })
          : t(`health_${health.status}`)}
    </p>
  );
}

/** What each check means for those who use the service. */
export function Checks({ health }: { readonly health: Health | null }) {
  const t = useMessages<typeof en>();
  return (
    <ul class="status-checks" aria-busy={health === null}>
      {checkNames.map((name) => {
        const state = health?.checks[name] ?? null;
        return (
          <li key={name} class={state ?? ''}>
            <span class="status-mark">
              {state !== null && <Icon name={state === 'ok' ? 'check' : 'warning'} />}
            </span>
            <div>
              <p class="status-check">
                {t(`check_${name}`)}
                {state !== null && <span class="status-state"> {t(`state_${state}`)}</span>}
              </p>
              {state === 'down' && <p class="small soft">{t(`down_${name}`)}</p>}
            </div>
          </li>
        );
      })}
    </ul>
  );
}
