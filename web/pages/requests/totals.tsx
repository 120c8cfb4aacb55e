import type { components } from '../../generated/api.d.ts';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Stat } from '../../ui/card.tsx';
import { Money } from '../../ui/money.tsx';
import type en from './messages.en.ts';

/** Sums over all pages of what the filters select. */
export function Totals({
  totals,
  isExact,
}: {
  readonly totals: components['schemas']['RequestTotals'];
  readonly isExact: boolean;
}) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  return (
    <div class="stats">
      <Stat label={t('requests')} note={isExact ? undefined : t('newestOnly')}>
        {isExact
          ? format.number(totals.requests)
          : t('moreThan', { requests: format.number(totals.requests) })}
      </Stat>
      <Stat label={t('promptTokens')}>{format.number(totals.prompt_tokens)}</Stat>
      <Stat label={t('completionTokens')}>{format.number(totals.completion_tokens)}</Stat>
      <Stat label={t('cost')}>
        <Money value={totals.cost} />
      </Stat>
    </div>
  );
}
