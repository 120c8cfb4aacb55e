import { useMutation } from '@tanstack/preact-query';
import { useState } from 'preact/hooks';
import { ApiError, describeError } from '../lib/api-error.ts';
import { useLanguage } from '../lib/language.tsx';
import { setTitle } from '../lib/title.ts';
import { Button } from '../ui/button.tsx';
import { Field } from '../ui/field.tsx';
import { useLayoutEffect } from 'preact/hooks';
import { signIn } from './session.ts';
import { useConsole } from './texts.ts';

export function SignInPage() {
  const t = useConsole();
  const title = t('signInTitle');
  useLayoutEffect(() => setTitle(title), [title]);
  return (
    <main id="main" tabIndex={-1}>
      <div class="page console-sign-in">
        <section class="card">
          <h1>{title}</h1>
          <p class="soft">{t('signInText')}</p>
          <SignInForm />
        </section>
      </div>
    </main>
  );
}

export function SignInForm({ onDone }: { readonly onDone?: () => unknown }) {
  const t = useConsole();
  const language = useLanguage();
  const [token, setToken] = useState('');
  const [isMissing, setIsMissing] = useState(false);
  const start = useMutation({ mutationFn: signIn, onSuccess: () => onDone?.() });
  const { error } = start;
  const isOff = error instanceof ApiError && error.status === 404;
  const isWrong = error instanceof ApiError && error.status === 401;
  const text = isWrong ? t('tokenWrong') : error === null || isOff ? null : describeError(error, language);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const typed = token.trim();
    setIsMissing(typed === '');
    if (typed !== '' && !start.isPending) start.mutate(typed);
  };
  return (
    <form class="console-sign-in-form" onSubmit={submit} noValidate>
      {/* Password managers keep the token under this name. */}
      <input type="text" name="username" autoComplete="username" value="operator" readOnly hidden />
      <Field
        label={t('token')}
        hint={t('tokenHint')}
        type="password"
        name="token"
        autoComplete="current-password"
        maxLength={1_000}
        hasFocus
        value={token}
        error={isMissing ? t('tokenMissing') : text}
        onInput={(event) => setToken(event.currentTarget.value)}
      />
      {isOff && (
        <p class="error-text" role="alert">
          {t('noTokens')} <code>npm run -s admin -- token create NAME --scope all</code>
        </p>
      )}
      <Button kind="primary" type="submit" busy={start.isPending}>
        {t('signIn')}
      </Button>
    </form>
  );
}
