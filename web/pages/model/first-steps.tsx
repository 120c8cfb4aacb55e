import { SiteLink } from '../../frame/site-link.tsx';
import { useMessages } from '../../lib/language.tsx';
import type { Model } from '../../lib/models.ts';
import { signInHref } from '../../lib/next-path.ts';
import { config } from '../../lib/page-facts.ts';
import { Card } from '../../ui/card.tsx';
import { CodeBlock } from '../../ui/copy.tsx';
import { createSnippet } from '../../lib/first-request.ts';
import type en from './messages.en.ts';

/** How to begin, for somebody without a session. */
export function FirstSteps({ model }: { readonly model: Model }) {
  const t = useMessages<typeof en>();
  return (
    <Card
      title={t('begin')}
      actions={
        <SiteLink class="button primary medium" href={signInHref()}>
          {t('signInToTry')}
        </SiteLink>
      }
    >
      <ol class="model-steps">
        <li>{t(config.signup_enabled ? 'stepSignUp' : 'stepSignIn')}</li>
        <li>{t('stepKey')}</li>
        <li>{t('stepRequest')}</li>
      </ol>
      <CodeBlock title={t('firstRequest')} code={createSnippet(model, t(`example_${model.type}`))} />
    </Card>
  );
}
