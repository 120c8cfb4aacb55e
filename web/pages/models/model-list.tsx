import { useMemo } from 'preact/hooks';
import { SiteLink } from '../../frame/site-link.tsx';
import { useAddressFilters } from '../../lib/address-filters.ts';
import { useFormat } from '../../lib/format.ts';
import { useCommon, useMessages } from '../../lib/language.tsx';
import {
  listCapabilities,
  modelHref,
  modelName,
  summarizeHours,
  useModelHistories,
  useModelStatuses,
  type DaySummary,
  type Model,
  type ModelStatus,
} from '../../lib/models.ts';
import { Button } from '../../ui/button.tsx';
import { Tag } from '../../ui/card.tsx';
import { Checkbox } from '../../ui/field.tsx';
import { ModelHealth } from '../../ui/model-health.tsx';
import { ModelPrices } from '../../ui/model-prices.tsx';
import { EmptyState } from '../../ui/states.tsx';
import { ChosenBar } from './chosen-bar.tsx';
import { toggleChosen } from './chosen-models.ts';
import { filterModels, readFilters } from './filter-models.ts';
import type en from './messages.en.ts';
import { ModelFilters, noFilters } from './model-filters.tsx';

/** From here on, rows out of sight are not laid out. */
const manyRows = 50;

const noDays: ReadonlyMap<string, DaySummary> = new Map();

export function ModelList({
  models,
  chosen,
}: {
  readonly models: readonly Model[];
  readonly chosen: readonly Model[];
}) {
  const t = useMessages<typeof en>();
  const [filters, change] = useAddressFilters();
  const histories = useModelHistories().data;
  const statuses = useModelStatuses().data;
  const days = useMemo(
    () =>
      histories === undefined
        ? noDays
        : new Map(Object.entries(histories).map(([id, hours]) => [id, summarizeHours(hours)])),
    [histories],
  );
  const shown = filterModels(models, readFilters(filters), days);
  if (models.length === 0) return <EmptyState title={t('noModels')}>{t('noModelsText')}</EmptyState>;
  return (
    <div class="models-list-view">
      <ModelFilters models={models} filters={filters} onChange={change} />
      <p class="soft small" role="status">
        {t('found', { count: shown.length })}
      </p>
      {shown.length === 0 ? (
        <EmptyState
          title={t('nothingMatches')}
          action={<Button onClick={() => change(noFilters)}>{t('clearFilters')}</Button>}
        >
          {t('nothingMatchesText')}
        </EmptyState>
      ) : (
        <ul class={`models-list ${shown.length > manyRows ? 'models-many' : ''}`}>
          {shown.map((model) => (
            <ModelRow
              key={model.id}
              model={model}
              day={days.get(model.id)}
              status={statuses?.[model.id]}
              isChosen={chosen.includes(model)}
              onToggle={() => change(toggleChosen(chosen, model.id))}
            />
          ))}
        </ul>
      )}
      <ChosenBar chosen={chosen} onChange={change} />
    </div>
  );
}

function ModelRow({
  model,
  day,
  status,
  isChosen,
  onToggle,
}: {
  readonly model: Model;
  readonly day: DaySummary | undefined;
  readonly status: ModelStatus | undefined;
  readonly isChosen: boolean;
  readonly onToggle: () => void;
}) {
  const t = useMessages<typeof en>();
  const common = useCommon();
  const format = useFormat();
  const tags = listCapabilities(model);
  const speed = day?.speed ?? null;
  return (
    <li class="models-row">
      <div class="models-what">
        <h2 class="models-name">
          <SiteLink href={modelHref(model.id)}>{modelName(model)}</SiteLink>
        </h2>
        <p class="models-id">
          <code>{model.id}</code>
        </p>
        {model.description !== null && <p class="models-description">{model.description}</p>}
        <ul class="models-tags" aria-label={t('capabilities')}>
          <li>
            <Tag>{common(`modelType_${model.type}`)}</Tag>
          </li>
          {model.type !== 'image' && (
            <li>
              <Tag>{t('contextTag', { size: format.short(model.context) })}</Tag>
            </li>
          )}
          {tags.map((name) => (
            <li key={name}>
              <Tag>{t(`can_${name}`)}</Tag>
            </li>
          ))}
        </ul>
      </div>
      <div class="models-prices">
        <ModelPrices model={model} />
      </div>
      <div class="models-health">
        <ModelHealth status={status} />
        {day !== undefined && (
          <p class="small soft">
            {day.successShare === null
              ? common('noRequests24')
              : common('succeeded24', { rate: format.percent(day.successShare) })}
          </p>
        )}
        {speed !== null && (
          <p class="small soft">
            {common('tokensPerSecond', { speed: format.number(speed, { maximumFractionDigits: 0 }) })}
          </p>
        )}
      </div>
      <Checkbox
        label={
          <>
            {t('compare')} <span class="unseen">{modelName(model)}</span>
          </>
        }
        checked={isChosen}
        onToggle={onToggle}
      />
    </li>
  );
}
