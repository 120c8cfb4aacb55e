import { useMessages } from '../../lib/language.tsx';
import { Badge } from '../../ui/card.tsx';
import type en from './messages.en.ts';
import type { Breaker, RouteView } from './routes.ts';

export const breakerTones = { closed: 'good', 'half-open': 'warning', open: 'bad' } as const satisfies Record<
  Breaker,
  string
>;

/** What is unusual about a route. Nothing if it is called. @param isQuiet whether the model is the reason, anyway */
export function RouteBadges({
  route,
  isQuiet = false,
}: {
  readonly route: RouteView;
  readonly isQuiet?: boolean;
}) {
  const t = useMessages<typeof en>();
  const { isDrained, isUsable, breaker, reasons, keys } = route;
  if (!isUsable) return <Badge tone="warning">{t('keyless')}</Badge>;
  if (isDrained) return <Badge tone="warning">{t('drained')}</Badge>;
  if (breaker !== 'closed') return <Badge tone={breakerTones[breaker]}>{t(`breaker_${breaker}`)}</Badge>;
  if (reasons.length === 0 || isQuiet) return null;
  const out = keys.filter(({ not_called: reason }) => reason !== null).length;
  return (
    <Badge tone="warning">
      {out < keys.length ? t('keysOut', { part: out, all: keys.length }) : t('impaired')}
    </Badge>
  );
}
