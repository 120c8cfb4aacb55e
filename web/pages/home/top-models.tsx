import { SiteLink } from '../../frame/site-link.tsx';
import type { DailyStat } from '../../lib/daily-stats.ts';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Card } from '../../ui/card.tsx';
import { Money } from '../../ui/money.tsx';
import { Table } from '../../ui/table.tsx';
import type en from './messages.en.ts';
import { rankModels } from './usage.ts';

const maxShown = 5;

/** The models that cost the most in 30 days. Each leads to its days. */
export function TopModels({ stats }: { readonly stats: readonly DailyStat[] }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const top = rankModels(stats).slice(0, maxShown);
  if (top.length === 0) return null;
  return (
    <Card title={t('topModels')} actions={<SiteLink href="/requests?view=days">{t('allDays')}</SiteLink>}>
      <Table
        caption={t('topModels')}
        rows={top}
        keyOf={({ model }) => model}
        columns={[
          {
            name: t('model'),
            isHeader: true,
            render: ({ model }) => (
              <SiteLink class="home-model" href={`/requests?${new URLSearchParams({ view: 'days', model })}`}>
                {model}
              </SiteLink>
            ),
          },
          {
            name: t('requests'),
            isNumber: true,
            render: ({ requests }) => format.number(requests),
          },
          {
            name: t('tokens'),
            isNumber: true,
            isMinor: true,
            render: ({ tokens }) => format.number(tokens),
          },
          { name: t('cost'), isNumber: true, render: ({ cost }) => <Money value={cost} /> },
        ]}
      />
    </Card>
  );
}
