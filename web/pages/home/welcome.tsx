import { SiteLink } from '../../frame/site-link.tsx';
import { useCommon, useMessages } from '../../lib/language.tsx';
import { modelHref, modelName, useModels, useModelStatuses } from '../../lib/models.ts';
import { config } from '../../lib/page-facts.ts';
import { Card } from '../../ui/card.tsx';
import { ModelHealth } from '../../ui/model-health.tsx';
import { ModelPrices } from '../../ui/model-prices.tsx';
import { EmptyState, QueryView, Skeleton } from '../../ui/states.tsx';
import { FirstRequest } from './first-steps.tsx';
import type en from './messages.en.ts';
import { ServiceState } from './service-state.tsx';

/** The page of models has the others. */
const maxShown = 6;

/** What this is, what it costs and how to begin, for somebody without a session. */
export function Welcome() {
  const t = useMessages<typeof en>();
  return (
    <div class="page home">
      <header class="home-head">
        <h1>{t('headline')}</h1>
        <p class="home-lead">{t('lead')}</p>
        <p class="home-actions">
          <SiteLink class="button primary medium" href="/sign-in">
            {t(config.signup_enabled ? 'signUp' : 'signIn')}
          </SiteLink>
          <a class="button secondary medium" href="/docs">
            {t('toDocs')}
          </a>
        </p>
        <ServiceState />
      </header>
      <Card title={t('begin')}>
        <ol class="home-steps">
          {(['stepSignIn', 'stepKey', 'stepAddress'] as const).map((step) => (
            <li key={step}>
              <h3>{t(step)}</h3>
              <p class="soft">{t(`${step}Text`)}</p>
            </li>
          ))}
        </ol>
        <FirstRequest />
      </Card>
      <Card title={t('models')} actions={<SiteLink href="/models">{t('toModels')}</SiteLink>}>
        <ModelCards />
      </Card>
    </div>
  );
}

function ModelCards() {
  const common = useCommon();
  const t = useMessages<typeof en>();
  const statuses = useModelStatuses();
  return (
    <QueryView query={useModels()} loading={<Skeleton lines={2} height="9rem" />}>
      {(models) =>
        models.length === 0 ? (
          <EmptyState title={t('noModels')} />
        ) : (
          <>
            <ul class="home-models">
              {models.slice(0, maxShown).map((model) => (
                <li key={model.id}>
                  <h3>
                    <SiteLink href={modelHref(model.id)}>{modelName(model)}</SiteLink>
                  </h3>
                  <p class="small soft">{common(`modelType_${model.type}`)}</p>
                  <div class="small soft">
                    <ModelPrices model={model} />
                  </div>
                  <ModelHealth status={statuses.data?.[model.id]} />
                </li>
              ))}
            </ul>
            {models.length > maxShown && (
              <p>
                <SiteLink href="/models">{t('allModels', { count: models.length })}</SiteLink>
              </p>
            )}
          </>
        )
      }
    </QueryView>
  );
}
