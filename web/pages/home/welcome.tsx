import { SiteLink } from '../../frame/site-link.tsx';
import { createSnippet } from '../../lib/first-request.ts';
import { useMessages } from '../../lib/language.tsx';
import { modelHref, modelName, useModels, useModelStatuses } from '../../lib/models.ts';
import { config } from '../../lib/page-facts.ts';
import { Card } from '../../ui/card.tsx';
import { CodeBlock } from '../../ui/copy.tsx';
import { ModelHealth } from '../../ui/model-health.tsx';
import { ModelPrices } from '../../ui/model-prices.tsx';
import { EmptyState, QueryView, Skeleton } from '../../ui/states.tsx';
import type en from './messages.en.ts';

/** The page of models has the others. */
const maxShown = 6;

/** What this is, what it costs and how to begin, for somebody without a session. */
export function Welcome() {
  const t = useMessages<typeof en>();
  const models = useModels();
  const example = models.data?.find(({ type }) => type === 'chat') ?? { id: 'MODEL', type: 'chat' as const };
  return (
    <div class="page home">
      <header class="home-head">
        <h1>{t('headline')}</h1>
        <p class="home-lead">{t('lead')}</p>
        <p class="home-actions">
          <SiteLink class="button primary medium" href="/sign-in">
            {t(config.signup_enabled ? 'signUp' : 'signIn')}
          </SiteLink>
          <SiteLink class="button medium" href="/models">
            {t('toModels')}
          </SiteLink>
        </p>
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
        <CodeBlock title={t('firstRequest')} code={createSnippet(example, t('exampleText'))} />
      </Card>
      <Card title={t('models')} actions={<SiteLink href="/status">{t('toStatus')}</SiteLink>}>
        <ModelCards />
      </Card>
    </div>
  );
}

function ModelCards() {
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
