import { useState } from 'preact/hooks';
import { api, call } from '../../lib/api.ts';
import { ApiError } from '../../lib/api-error.ts';
import { browserTimeZone } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { config } from '../../lib/page-facts.ts';
import { beginSession } from '../../lib/session.ts';
import { Button } from '../../ui/button.tsx';
import { CodeField, isWholeCode } from '../../ui/code-field.tsx';
import { Checkbox } from '../../ui/field.tsx';
import { ErrorText } from '../../ui/states.tsx';
import type en from './messages.en.ts';
import type { CodeRequest } from './request-code.ts';

/** The code is right where the field is; everything else is about the whole form. */
const isAboutCode = (error: unknown): boolean =>
  error instanceof ApiError && (error.code === 'invalid_code' || error.code === 'validation_failed');

export function CodeStep({
  email,
  challengeId,
  request,
}: {
  readonly email: string;
  readonly challengeId: string;
  readonly request: CodeRequest;
}) {
  const t = useMessages<typeof en>();
  const [code, setCode] = useState('');
  const [rememberMe, setRememberMe] = useState(false);
  const [endsOthers, setEndsOthers] = useState(false);
  const [isBusy, setIsBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const verify = (event: SubmitEvent): void => {
    event.preventDefault();
    if (!isWholeCode(code) || isBusy) return;
    setIsBusy(true);
    setError(null);
    const body = {
      challenge_id: challengeId,
      code,
      remember_me: rememberMe,
      end_other_sessions: endsOthers,
      timezone: browserTimeZone(),
    };
    // The page goes on once there is a session.
    call(api.POST('/v1/web/auth/verify-code', { body })).then(beginSession, (reason: unknown) => {
      setIsBusy(false);
      setError(reason);
    });
  };
  return (
    <form class="sign-in-form" onSubmit={verify} noValidate>
      <h1>{t('codeTitle')}</h1>
      <p>
        {t.nodes('codeSentTo', { email: <strong class="sign-in-email">{email}</strong> })}{' '}
        {t('codeMinutes', { count: Math.round(config.code_ttl_seconds / 60) })}
      </p>
      <CodeField
        value={code}
        error={isAboutCode(error) ? error : null}
        onChange={(typed) => {
          setCode(typed);
          setError(null);
        }}
      />
      <div class="sign-in-choices">
        <Checkbox label={t('rememberMe')} checked={rememberMe} onToggle={setRememberMe} />
        <Checkbox
          label={t('endOthers')}
          hint={t('endOthersHint')}
          checked={endsOthers}
          onToggle={setEndsOthers}
        />
      </div>
      <ErrorText error={isAboutCode(error) ? null : error} />
      <Button kind="primary" type="submit" busy={isBusy} disabled={!isWholeCode(code)}>
        {t('submit')}
      </Button>
      <p class="small soft" role="status">
        {request.sent > 1 ? t('resent') : t('spam')}
      </p>
      <div class="sign-in-actions">
        <Button size="small" busy={request.isBusy} onClick={() => request.begin(email)}>
          {t('resend')}
        </Button>
        <Button size="small" kind="quiet" onClick={request.restart}>
          {t('changeEmail')}
        </Button>
      </div>
    </form>
  );
}
