import type { ComponentChild } from 'preact';
import { SiteLink } from '../../frame/site-link.tsx';
import { useAddressFilters } from '../../lib/address-filters.ts';
import { useFormat, type Format } from '../../lib/format.ts';
import { useCommon, useMessages } from '../../lib/language.tsx';
import type { Translate } from '../../lib/messages.ts';
import {
  listCapabilities,
  modelHref,
  modelName,
  summarizeHours,
  useModelHistories,
  useModelStatuses,
  type Model,
} from '../../lib/models.ts';
import { listPrices, readImagePrices, type PriceLine } from '../../lib/prices.ts';
import { ModelHealth } from '../../ui/model-health.tsx';
import { ModelPrices } from '../../ui/model-prices.tsx';
import { EmptyState } from '../../ui/states.tsx';
import { toggleChosen } from './chosen-models.ts';
import type en from './messages.en.ts';
import { ModelPicker } from './model-picker.tsx';

export function Comparison({
  models,
  chosen,
}: {
  readonly models: readonly Model[];
  readonly chosen: readonly Model[];
}) {
  const t = useMessages<typeof en>();
  const [, change] = useAddressFilters();
  return (
    <div class="models-view">
      <ModelPicker models={models} chosen={chosen} onToggle={(id) => change(toggleChosen(chosen, id))} />
      {chosen.length === 0 ? (
        <EmptyState title={t('nothingChosen')}>{t('nothingChosenText')}</EmptyState>
      ) : (
        <ComparisonTable chosen={chosen} />
      )}
    </div>
  );
}

interface Property {
  readonly name: string;
  readonly render: (model: Model) => ComponentChild;
}

function ComparisonTable({ chosen }: { readonly chosen: readonly Model[] }) {
  const t = useMessages<typeof en>();
  const rows = useProperties().map(({ name, render }) => ({ name, cells: chosen.map(render) }));
  return (
    <div class="table-scroll" role="region" aria-label={t('view_compare')} tabIndex={0}>
      <table class="table models-comparison" style={{ '--columns': chosen.length }}>
        <caption class="unseen">{t('view_compare')}</caption>
        <thead>
          <tr>
            <td />
            {chosen.map((model) => (
              <th key={model.id} scope="col">
                <SiteLink href={modelHref(model.id)}>{modelName(model)}</SiteLink>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows
            .filter(({ cells }) => cells.some((cell) => cell !== dash))
            .map(({ name, cells }) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                {chosen.map((model, i) => (
                  <td key={model.id}>{cells[i]}</td>
                ))}
              </tr>
            ))}
        </tbody>
      </table>
    </div>
  );
}

const dash = '–';

const priceCell = (format: Format, model: Model, text: PriceLine['text']): ComponentChild => {
  const line = listPrices(model.pricing).find((each) => each.text === text);
  return line === undefined ? dash : <span class="money">{format.price(line.roubles)}</span>;
};

/** Without a price of its own, cached input costs as much as other input. */
function cachedPrice(format: Format, model: Model): ComponentChild {
  const price = priceCell(format, model, 'priceCached');
  return price === dash ? priceCell(format, model, 'priceInput') : price;
}

/** What models that are not priced by tokens of input and output cost, in words. */
function otherPrice(model: Model): ComponentChild {
  const isByTokens = model.pricing.type === 'tokens' && readImagePrices(model.pricing).length === 0;
  return isByTokens && !listPrices(model.pricing).some(({ text }) => text === 'priceAnyToken') ? (
    dash
  ) : (
    <ModelPrices model={model} />
  );
}

function useProperties(): readonly Property[] {
  const t: Translate<typeof en> = useMessages<typeof en>();
  const common = useCommon();
  const format = useFormat();
  const histories = useModelHistories().data;
  const statuses = useModelStatuses().data;
  const day = (model: Model) => summarizeHours(histories?.[model.id] ?? []);
  return [
    { name: t('type'), render: ({ type }) => common(`modelType_${type}`) },
    { name: t('developer'), render: (model) => model.owned_by },
    { name: t('context'), render: (model) => t('tokens', { count: model.context }) },
    { name: t('inputPrice'), render: (model) => priceCell(format, model, 'priceInput') },
    { name: t('cachedPrice'), render: (model) => cachedPrice(format, model) },
    {
      name: t('outputPrice'),
      render: (model) => (model.type === 'embedding' ? dash : priceCell(format, model, 'priceOutput')),
    },
    { name: t('otherPrice'), render: otherPrice },
    {
      name: t('capabilities'),
      render: (model) =>
        listCapabilities(model)
          .map((name) => t(`can_${name}`))
          .join(', ') || dash,
    },
    {
      name: t('healthNow'),
      render: (model) => {
        const status = statuses?.[model.id];
        return status === undefined || status.message === 'Not enough data' ? (
          dash
        ) : (
          <ModelHealth status={status} />
        );
      },
    },
    {
      name: t('success24'),
      render: (model) => {
        const { successShare } = day(model);
        return successShare === null ? dash : format.percent(successShare);
      },
    },
    {
      name: t('speed'),
      render: (model) => {
        const { speed } = day(model);
        return speed === null
          ? dash
          : common('tokensPerSecond', { speed: format.number(speed, { maximumFractionDigits: 0 }) });
      },
    },
    {
      name: t('duration'),
      render: (model) => {
        const { seconds } = day(model);
        return seconds === null ? dash : format.seconds(seconds);
      },
    },
  ];
}
