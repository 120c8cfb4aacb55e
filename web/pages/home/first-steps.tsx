import { SiteLink } from '../../frame/site-link.tsx';
import { createSnippet } from '../../lib/first-request.ts';
import { useMessages } from '../../lib/language.tsx';
import { modelHref, useModels } from '../../lib/models.ts';
import { Card } from '../../ui/card.tsx';
import { CodeBlock } from '../../ui/copy.tsx';
import type en from './messages.en.ts';

/** A model for a first request: one that chats, if there is one. */
function useExampleModel() {
  const models = useModels().data ?? [];
  return models.find(({ type, active }) => type === 'chat' && active) ?? models[0] ?? null;
}

/** A first request to this service, as a command. */
export function FirstRequest() {
  const t = useMessages<typeof en>();
  const model = useExampleModel() ?? { id: 'MODEL', type: 'chat' as const };
  return <CodeBlock title={t('firstRequest')} code={createSnippet(model, t('exampleText'))} />;
}

/** What to do with an account that has never sent a request. */
export function FirstSteps() {
  const t = useMessages<typeof en>();
  const model = useExampleModel();
  const link = (href: string, text: string) => (
    <SiteLink key={href} href={href}>
      {text}
    </SiteLink>
  );
  return (
    <Card title={t('firstSteps')}>
      <ol class="home-steps">
        <li>
          <h3>{t('stepCopyKey')}</h3>
          <p class="soft">{t.nodes('stepCopyKeyText', { keys: link('/keys', t('keysPage')) })}</p>
        </li>
        <li>
          <h3>{t('stepSend')}</h3>
          <p class="soft">
            {model === null
              ? t('stepSendText')
              : t.nodes('stepTryText', { model: link(modelHref(model.id), t('modelPage')) })}
          </p>
        </li>
        <li>
          <h3>{t('stepWatch')}</h3>
          <p class="soft">{t.nodes('stepWatchText', { requests: link('/requests', t('requestsPage')) })}</p>
        </li>
      </ol>
      <FirstRequest />
    </Card>
  );
}
