import { SiteLink } from '../../frame/site-link.tsx';
import { ApiError } from '../../lib/api-error.ts';
import { useCommon, useMessages } from '../../lib/language.tsx';
import { modelName, useModel, useModelStatuses, type Model } from '../../lib/models.ts';
import type { PageProps } from '../../lib/pages.ts';
import { useTitle } from '../../lib/title.ts';
import { Tag } from '../../ui/card.tsx';
import { CopyButton } from '../../ui/copy.tsx';
import { Icon } from '../../ui/icon.tsx';
import { ModelHealth } from '../../ui/model-health.tsx';
import { EmptyState, ErrorState, Skeleton } from '../../ui/states.tsx';
import { DayCard } from './day-card.tsx';
import type en from './messages.en.ts';
import './model.css';
import { PriceCard } from './price-card.tsx';
import { PropertiesCard } from './properties-card.tsx';
import { TryIt } from './try-it.tsx';

export default function ModelPage({ id }: PageProps) {
  const query = useModel(id);
  const { data: model, error } = query;
  useTitle(model === undefined ? id : modelName(model));
  return (
    <div class="page model">
      {model !== undefined ? (
        <ModelView model={model} />
      ) : error === null ? (
        <>
          <h1>{id}</h1>
          <Skeleton lines={10} height="4rem" />
        </>
      ) : error instanceof ApiError && error.status === 404 ? (
        <Missing id={id} />
      ) : (
        <>
          <h1>{id}</h1>
          <ErrorState error={error} onRetry={query.refetch} />
        </>
      )}
    </div>
  );
}

function Missing({ id }: { readonly id: string }) {
  const t = useMessages<typeof en>();
  return (
    <>
      <h1>{t('missing')}</h1>
      <EmptyState
        title={id}
        action={
          <SiteLink class="button primary medium" href="/models">
            {t('allModels')}
          </SiteLink>
        }
      >
        {t('missingText')}
      </EmptyState>
    </>
  );
}

function ModelView({ model }: { readonly model: Model }) {
  return (
    <>
      <ModelHead model={model} />
      <div class="model-columns">
        <PriceCard model={model} />
        <PropertiesCard model={model} />
      </div>
      <TryIt model={model} key={model.id} />
      <DayCard model={model} />
    </>
  );
}

function ModelHead({ model }: { readonly model: Model }) {
  const t = useMessages<typeof en>();
  const common = useCommon();
  const status = useModelStatuses().data?.[model.id];
  const ids = encodeURIComponent(model.id);
  return (
    <header class="model-head">
      <SiteLink class="small" href="/models">
        <Icon name="left" size={14} /> {t('allModels')}
      </SiteLink>
      <div class="page-head">
        <h1>{modelName(model)}</h1>
        <div class="model-actions">
          {model.active && (
            <SiteLink class="button secondary medium" href={`/playground?model=${ids}`}>
              {t('openPlayground')}
            </SiteLink>
          )}
          {model.type !== 'image' && (
            <SiteLink class="button secondary medium" href={`/models?view=calculator&models=${ids}`}>
              {t('calculate')}
            </SiteLink>
          )}
          <SiteLink class="button secondary medium" href={`/models?view=compare&models=${ids}`}>
            {t('compare')}
          </SiteLink>
        </div>
      </div>
      <div class="model-facts">
        <code>{model.id}</code>
        <CopyButton text={model.id} label={t('copyId')} />
        <Tag>{common(`modelType_${model.type}`)}</Tag>
        <ModelHealth status={status} />
      </div>
      {model.description !== null && <p class="prose soft">{model.description}</p>}
    </header>
  );
}
