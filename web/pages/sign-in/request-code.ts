import { useState } from 'preact/hooks';
import { api, call } from '../../lib/api.ts';
import { ApiError, findFieldError } from '../../lib/api-error.ts';
import { config } from '../../lib/page-facts.ts';

/** With sign-up, one form is enough: an address that has a user signs in. */
export const purpose = config.signup_enabled ? 'signup' : 'login';

export type Step =
  | { readonly name: 'email' }
  | { readonly name: 'captcha' }
  | { readonly name: 'code'; readonly challengeId: string };

export interface CodeRequest {
  readonly step: Step;
  readonly isBusy: boolean;
  /** Why no code was mailed. */
  readonly error: unknown;
  /** How many codes were mailed. */
  readonly sent: number;
  /** Goes on to the captcha, or mails a code at once where none is needed. */
  readonly begin: (email: string) => void;
  /** @param captchaToken null without a solved captcha */
  readonly mail: (email: string, captchaToken: string | null) => void;
  readonly restart: () => void;
}

/** The steps to a mailed code. */
export function useCodeRequest(): CodeRequest {
  const [step, setStep] = useState<Step>({ name: 'email' });
  const [isBusy, setIsBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const [sent, setSent] = useState(0);
  const mail = (email: string, captchaToken: string | null): void => {
    setIsBusy(true);
    setError(null);
    const body = { email, purpose, captcha_token: captchaToken } as const;
    call(api.POST('/v1/web/auth/request-code', { body })).then(
      ({ challenge_id: challengeId }) => {
        setIsBusy(false);
        setSent((count) => count + 1);
        setStep({ name: 'code', challengeId });
      },
      (reason: unknown) => {
        setIsBusy(false);
        setError(reason);
        setStep(stepAfter(reason));
      },
    );
  };
  return {
    step,
    isBusy,
    error,
    sent,
    mail,
    begin(email) {
      setError(null);
      if (config.captcha_mode === 'off') mail(email, null);
      else setStep({ name: 'captcha' });
    },
    restart() {
      setError(null);
      setStep({ name: 'email' });
    },
  };
}

/** Where the visitor can mend what was wrong. */
function stepAfter(error: unknown): Step {
  const isCaptcha = error instanceof ApiError && error.code === 'captcha_failed';
  return isCaptcha && findFieldError(error, 'email', 'en') === null ? { name: 'captcha' } : { name: 'email' };
}
