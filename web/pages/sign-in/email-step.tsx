import { useState } from 'preact/hooks';
import { describeError } from '../../lib/api-error.ts';
import { useLanguage, useMessages } from '../../lib/language.tsx';
import { config } from '../../lib/page-facts.ts';
import { Button } from '../../ui/button.tsx';
import { Field } from '../../ui/field.tsx';
import type en from './messages.en.ts';
import type { CodeRequest } from './request-code.ts';

export function EmailStep({
  email,
  onChange,
  request,
}: {
  readonly email: string;
  readonly onChange: (email: string) => void;
  readonly request: CodeRequest;
}) {
  const t = useMessages<typeof en>();
  const language = useLanguage();
  const [fault, setFault] = useState<'emailMissing' | 'emailWrong' | null>(null);
  const hasEnded = (history.state as { ended?: true } | null)?.ended === true;
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const found = findFault(email.trim());
    setFault(found);
    if (found === null && !request.isBusy) request.begin(email.trim());
  };
  const requestError = request.error === null ? null : describeError(request.error, language);
  const error = fault === null ? requestError : t(fault);
  return (
    <form class="sign-in-form" onSubmit={submit} noValidate>
      {hasEnded && <p class="sign-in-note">{t('sessionEnded')}</p>}
      <p class="soft">{t(config.signup_enabled ? 'introWithSignup' : 'intro')}</p>
      <Field
        label={t('email')}
        type="email"
        name="email"
        autoComplete="email"
        autoCapitalize="none"
        spellcheck={false}
        maxLength={320}
        hasFocus
        value={email}
        error={error}
        onInput={(event) => {
          setFault(null);
          onChange(event.currentTarget.value);
        }}
      />
      <Button kind="primary" type="submit" busy={request.isBusy}>
        {t('continue')}
      </Button>
      <Terms />
    </form>
  );
}

/** A typing error is told before the captcha, which it would waste. The api knows the whole rule. */
function findFault(email: string): 'emailMissing' | 'emailWrong' | null {
  if (email === '') return 'emailMissing';
  return /^[^\s@]+@[^\s@.]+(?:\.[^\s@.]+)+$/.test(email) ? null : 'emailWrong';
}

/** What a new user accepts, if the operator has said so. */
function Terms() {
  const t = useMessages<typeof en>();
  const { terms_url: terms, privacy_url: privacy, signup_enabled: isOpen } = config;
  if (!isOpen || terms === null) return null;
  const links = {
    terms: (
      <a href={terms} target="_blank" rel="noopener">
        {t('terms')}
      </a>
    ),
    privacy: (
      <a href={privacy ?? ''} target="_blank" rel="noopener">
        {t('privacy')}
      </a>
    ),
  };
  return (
    <p class="soft small">
      {privacy === null ? t.nodes('acceptTerms', links) : t.nodes('acceptBoth', links)}
    </p>
  );
}
