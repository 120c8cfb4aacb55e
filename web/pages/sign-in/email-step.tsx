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
  const [isMissing, setIsMissing] = useState(false);
  const hasEnded = (history.state as { ended?: true } | null)?.ended === true;
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    setIsMissing(email.trim() === '');
    if (email.trim() !== '' && !request.isBusy) request.begin(email.trim());
  };
  const error = isMissing
    ? t('emailMissing')
    : request.error === null
      ? null
      : describeError(request.error, language);
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
          setIsMissing(false);
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
