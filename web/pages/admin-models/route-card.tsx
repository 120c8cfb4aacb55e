import { nameDrained } from '../../../shared/catalog/drained-routes.ts';
import { LastChange } from '../../admin/last-change.tsx';
import { useFormat } from '../../lib/format.ts';
import { useOperatorReasons } from '../../admin/operator-reasons.ts';
import { useMay } from '../../admin/session.ts';
import { useMessages } from '../../lib/language.tsx';
import type en from './messages.en.ts';
import { RouteActions } from './route-actions.tsx';
import { RouteBadges } from './route-badges.tsx';
import type { RouteView } from './routes.ts';

/** A route of a model, how it does, and what can be done with it. */
export function RouteCard({
  route,
  isDisabled,
}: {
  readonly route: RouteView;
  readonly isDisabled: boolean;
}) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const mayChange = useMay('all');
  const { upstream, upstreamModels, keys, isDrained, isUsable, isWholeDrained: isWhole } = route;
  const { pauseSeconds, succeeded, failed, rateLimited } = route;
  const { calls, max_calls: maxCalls, waiting_for_slot: waiting } = keys[0]!;
  const named = keys.filter(({ key }) => key !== null);
  const failedAccounts = Math.max(...keys.map(({ failed_accounts: count }) => count));
  const facts = [
    route.host ?? route.kind,
    ...(isUsable
      ? [
          t('slots', { used: calls, all: maxCalls }),
          named.length === 0 ? t('noKey') : t('keyCount', { count: named.length }),
        ]
      : []),
  ];
  return (
    <li class="admin-models-route">
      <div class="admin-models-what">
        <p class="admin-models-name">
          <strong>{upstream}</strong> <code>{upstreamModels.join(', ')}</code>{' '}
          <RouteBadges route={route} isQuiet={isDisabled} />
          {pauseSeconds > 0 && (
            <span class="soft small">{t('opensAgain', { time: format.duration(pauseSeconds) })}</span>
          )}
        </p>
        <p class="soft small">{facts.join(' · ')}</p>
        {succeeded + failed + rateLimited > 0 && (
          <p class="soft small">
            {t('lately', {
              ok: t('okCalls', { count: succeeded }),
              failed: t('failedCalls', { count: failed }),
              limited: t('limitedCalls', { count: rateLimited }),
            })}
          </p>
        )}
        {waiting > 0 && <p class="small">{t('waitingForSlot', { count: waiting })}</p>}
        {failedAccounts > 0 && <p class="small">{t('failedAccounts', { count: failedAccounts })}</p>}
        {isWhole && <p class="small">{t('drainedWhole')}</p>}
        {isDrained && (
          <LastChange resource={`upstream:${nameDrained(upstream, isWhole ? null : route.model)}`} />
        )}
        {(!isUsable || (!isDisabled && !isDrained)) && <Reasons route={route} />}
      </div>
      {mayChange && isUsable && <RouteActions route={route} isWhole={isWhole} mayReset={!isDisabled} />}
    </li>
  );
}

/** Why it is not called. */
function Reasons({ route: { keys, reasons } }: { readonly route: RouteView }) {
  const t = useMessages<typeof en>();
  const say = useOperatorReasons();
  const lines =
    keys.length === 1
      ? reasons.map(say)
      : keys.flatMap(({ key, not_called: reason }) =>
          reason === null ? [] : [key === null ? say(reason) : t('keyReason', { key, reason: say(reason) })],
        );
  return (
    <>
      {[...new Set(lines)].map((line) => (
        <p key={line} class="admin-models-reason small">
          {line}
        </p>
      ))}
    </>
  );
}
