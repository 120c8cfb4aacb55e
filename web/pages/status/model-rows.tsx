import { useState } from 'preact/hooks';
import { SiteLink } from '../../frame/site-link.tsx';
import { useFormat } from '../../lib/format.ts';
import { useCommon, useMessages } from '../../lib/language.tsx';
import {
  modelHref,
  modelName,
  summarizeHours,
  useModelHistories,
  useModels,
  useModelStatuses,
  type Model,
  type ModelHour,
  type ModelStatus,
} from '../../lib/models.ts';
import { HourBars } from '../../ui/hour-bars.tsx';
import { ModelHealth } from '../../ui/model-health.tsx';
import { EmptyState, ErrorState, Skeleton } from '../../ui/states.tsx';
import { Table } from '../../ui/table.tsx';
import type en from './messages.en.ts';

/** Every model with its success in each of 24 hours. */
export function ModelRows() {
  const t = useMessages<typeof en>();
  const models = useModels();
  const histories = useModelHistories();
  const statuses = useModelStatuses();
  const failed = [models, histories].find(({ data, error }) => data === undefined && error !== null);
  if (failed !== undefined) return <ErrorState error={failed.error} onRetry={failed.refetch} />;
  if (models.data === undefined || histories.data === undefined)
    return <Skeleton lines={12} height="4.5rem" />;
  if (models.data.length === 0) return <EmptyState title={t('noModels')} />;
  return (
    <>
      <ul class="status-models">
        {models.data.map((model) => (
          <ModelRow
            key={model.id}
            model={model}
            hours={histories.data[model.id] ?? []}
            status={statuses.data?.[model.id]}
          />
        ))}
      </ul>
      <HoursOfAll models={models.data} histories={histories.data} />
    </>
  );
}

/** The bars of all models as one table, the newest hour first. */
function HoursOfAll({
  models,
  histories,
}: {
  readonly models: readonly Model[];
  readonly histories: Readonly<Record<string, readonly ModelHour[]>>;
}) {
  const t = useMessages<typeof en>();
  const common = useCommon();
  const format = useFormat();
  const [isOpen, setIsOpen] = useState(false);
  const hours = (histories[models[0]!.id] ?? []).map(({ hour }) => hour);
  const cell = ({ id }: Model, index: number): string => {
    const rate = histories[id]?.[index]?.success_rate ?? null;
    return rate === null ? '–' : format.percent(rate / 100);
  };
  return (
    <details class="status-table" onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary>{common('asTable')}</summary>
      {isOpen && (
        <Table
          caption={t('modelsText')}
          rows={models}
          keyOf={({ id }) => id}
          columns={[
            { name: t('model'), isHeader: true, render: modelName },
            ...hours
              .map((hour, index) => ({
                name: format.time(hour),
                isNumber: true,
                render: (model: Model) => cell(model, index),
              }))
              .toReversed(),
          ]}
        />
      )}
    </details>
  );
}

function ModelRow({
  model,
  hours,
  status,
}: {
  readonly model: Model;
  readonly hours: readonly ModelHour[];
  readonly status: ModelStatus | undefined;
}) {
  const t = useMessages<typeof en>();
  const common = useCommon();
  const format = useFormat();
  const { successShare, speed, seconds } = summarizeHours(hours);
  const name = modelName(model);
  return (
    <li class="status-model">
      <div class="status-model-head">
        <h3>
          <SiteLink href={modelHref(model.id)}>{name}</SiteLink>
        </h3>
        <ModelHealth status={status} />
      </div>
      <HourBars name={name} hours={hours} />
      <dl class="status-figures">
        <div>
          <dt>{t('success')}</dt>
          <dd>{successShare === null ? '–' : format.percent(successShare)}</dd>
        </div>
        <div>
          <dt>{t('speed')}</dt>
          <dd>
            {speed === null
              ? '–'
              : common('tokensPerSecond', { speed: format.number(speed, { maximumFractionDigits: 0 }) })}
          </dd>
        </div>
        <div>
          <dt>{t('duration')}</dt>
          <dd>{seconds === null ? '–' : format.seconds(seconds)}</dd>
        </div>
      </dl>
    </li>
  );
}
