import type { ComponentChildren } from 'preact';
import { useFormat } from '../../lib/format.ts';
import { useCommon, useMessages } from '../../lib/language.tsx';
import { readImagePrices } from '../../lib/prices.ts';
import type { Pricing } from '../../lib/models.ts';
import { ModelPrices } from '../../ui/model-prices.tsx';
import { Table } from '../../ui/table.tsx';
import type en from './messages.en.ts';
import { marginOf, pairPrices, type PricePair } from './pair-prices.ts';
import type { AdminModel } from './read-catalog.ts';
import type { RouteTarget, RouteView } from './routes.ts';

interface Row {
  readonly upstream: string;
  readonly target: RouteTarget;
  readonly pairs: readonly PricePair[];
}

/** What each route gets of the requests, and what a vendor charges for them beside what customers pay. */
export function RoutePrices({
  model: { pricing: prices, type },
  routes,
}: {
  readonly model: AdminModel;
  readonly routes: readonly RouteView[];
}) {
  const t = useMessages<typeof en>();
  const common = useCommon();
  const format = useFormat();
  // The description of the API says that both are those of `GET /v1/models`.
  const pricing = prices as unknown as Pricing;
  const rows = routes.flatMap(({ upstream, targets }) =>
    targets.map((target): Row => ({ upstream, target, pairs: pairPrices(target.cost, pricing) })),
  );
  const sum = rows.reduce((total, { target }) => total + target.weight, 0);
  const hasTable = readImagePrices(pricing).length > 0;
  const ofImages = (of: Pricing | null) =>
    of === null ? '–' : <ModelPrices model={{ pricing: of, type }} />;
  const lines = (pairs: readonly PricePair[], render: (pair: PricePair) => ComponentChildren) => (
    <ul class="admin-models-lines">
      {pairs.map((pair) => (
        <li key={pair.text}>{render(pair)}</li>
      ))}
    </ul>
  );
  const price = (value: number | null) => (value === null ? '–' : format.price(value));
  return (
    <Table<Row>
      caption={t('routePrices')}
      rows={rows}
      keyOf={({ upstream, target }) => `${upstream} ${target.name}`}
      columns={[
        {
          name: t('route'),
          isHeader: true,
          render: ({ upstream, target }) => (
            <>
              {upstream} <code class="admin-models-beside">{target.name}</code>
            </>
          ),
        },
        {
          name: t('weight'),
          isNumber: true,
          render: ({ target: { weight } }) => (
            <>
              {format.number(weight)}
              {rows.length > 1 && <span class="admin-models-beside">{format.percent(weight / sum)}</span>}
            </>
          ),
        },
        {
          name: t('priceFor'),
          render: ({ pairs }) => !hasTable && lines(pairs, ({ text }) => common(text, { price: '' }).trim()),
        },
        {
          name: t('vendorPrice'),
          isNumber: true,
          render: ({ target: { cost }, pairs }) =>
            cost === null
              ? t('unknown')
              : hasTable
                ? ofImages(cost)
                : lines(pairs, ({ vendor }) => price(vendor)),
        },
        {
          name: t('customerPrice'),
          isNumber: true,
          render: ({ pairs }) =>
            hasTable ? ofImages(pricing) : lines(pairs, ({ customer }) => price(customer)),
        },
        {
          name: t('margin'),
          isNumber: true,
          render: ({ pairs }) =>
            !hasTable &&
            lines(pairs, (pair) => {
              const margin = marginOf(pair);
              if (margin === null) return '–';
              return (
                <span class={margin < 0 ? 'admin-models-loss' : undefined}>{format.percent(margin)}</span>
              );
            }),
        },
      ]}
    />
  );
}
