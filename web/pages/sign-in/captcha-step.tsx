import { useEffect, useRef, useState } from 'preact/hooks';
import type { components } from '../../generated/api.d.ts';
import { api, call } from '../../lib/api.ts';
import { useMessages } from '../../lib/language.tsx';
import { config } from '../../lib/page-facts.ts';
import { Button } from '../../ui/button.tsx';
import { ErrorState, ErrorText } from '../../ui/states.tsx';
import { CaptchaPicture } from './captcha-picture.tsx';
import type en from './messages.en.ts';
import { purpose, type CodeRequest } from './request-code.ts';

type Challenge = components['schemas']['ClickCaptchaChallenge'];
export interface Point {
  /** 0 to 10 000, over the width and the height of the picture. */
  readonly x: number;
  readonly y: number;
}

/** How many icons the prompt shows. */
const iconCount = 4;

const loadChallenge = (): Promise<Challenge> =>
  call(api.POST('/v1/web/auth/captcha/challenge', { body: { purpose } }));

/** Returns the token for the right clicks, null for wrong ones. */
async function verify({ challenge_id }: Challenge, points: readonly Point[]): Promise<string | null> {
  const body = { challenge_id, points: [...points] };
  const { success, captcha_token: token } = await call(api.POST('/v1/web/auth/captcha/verify', { body }));
  return success ? (token ?? null) : null;
}

type State =
  | { readonly name: 'loading' }
  | { readonly name: 'failed'; readonly error: unknown }
  | { readonly name: 'shown'; readonly challenge: Challenge };

export function CaptchaStep({ email, request }: { readonly email: string; readonly request: CodeRequest }) {
  const t = useMessages<typeof en>();
  const [state, setState] = useState<State>({ name: 'loading' });
  const [points, setPoints] = useState<readonly Point[]>([]);
  const [isChecking, setIsChecking] = useState(false);
  const [isWrong, setIsWrong] = useState(false);
  const heading = useRef<HTMLHeadingElement>(null);

  const load = (): void => {
    setState({ name: 'loading' });
    setPoints([]);
    loadChallenge().then(
      (challenge) => setState({ name: 'shown', challenge }),
      (error: unknown) => setState({ name: 'failed', error }),
    );
  };
  useEffect(() => {
    heading.current?.focus();
    load();
  }, []);
  useEffect(() => {
    if (state.name !== 'shown') return;
    // A picture that was forgotten in a tab is replaced before it is worth nothing.
    const timer = setTimeout(load, (state.challenge.expires_in - 10) * 1_000);
    return () => clearTimeout(timer);
  }, [state]);

  const place = (point: Point): void => {
    if (state.name !== 'shown' || isChecking) return;
    const placed = [...points, point];
    setPoints(placed);
    setIsWrong(false);
    if (placed.length < iconCount) return;
    setIsChecking(true);
    verify(state.challenge, placed)
      .then(
        (token) => {
          if (token !== null) request.mail(email, token);
          setIsWrong(token === null);
          if (token === null) load();
        },
        (error: unknown) => setState({ name: 'failed', error }),
      )
      .finally(() => setIsChecking(false));
  };
  const isBusy = isChecking || request.isBusy;
  return (
    <div class="sign-in-form">
      <h1 ref={heading} tabIndex={-1}>
        {t('captchaTitle')}
      </h1>
      <p>{t('captchaTask')}</p>
      {state.name === 'failed' ? (
        <ErrorState error={state.error} onRetry={load} />
      ) : (
        <CaptchaPicture
          challenge={state.name === 'shown' ? state.challenge : null}
          points={points}
          onPlace={place}
          onUndo={() => setPoints(points.slice(0, -1))}
        />
      )}
      <p class="small soft" role="status">
        {isBusy
          ? t('captchaChecking')
          : isWrong
            ? t('captchaWrong')
            : t('points', { count: points.length, total: iconCount })}
      </p>
      <ErrorText error={request.error} />
      <div class="sign-in-actions">
        <Button
          size="small"
          disabled={points.length === 0 || isBusy}
          onClick={() => setPoints(points.slice(0, -1))}
        >
          {t('undo')}
        </Button>
        <Button size="small" icon="refresh" disabled={isBusy} onClick={load}>
          {t('otherPicture')}
        </Button>
        <Button size="small" kind="quiet" disabled={isBusy} onClick={request.restart}>
          {t('changeEmail')}
        </Button>
      </div>
      <WithoutPicture email={email} request={request} />
    </div>
  );
}

/** What somebody does who cannot see the picture: what the operator has chosen. */
function WithoutPicture({ email, request }: { readonly email: string; readonly request: CodeRequest }) {
  const t = useMessages<typeof en>();
  if (config.captcha_mode === 'optional') {
    return (
      <div class="sign-in-aside">
        <Button busy={request.isBusy} onClick={() => request.mail(email, null)}>
          {t('cannotSee')}
        </Button>
        <p class="small soft">{t('skipHint')}</p>
      </div>
    );
  }
  if (config.support_email === null) return null;
  const address = <a href={`mailto:${config.support_email}`}>{config.support_email}</a>;
  return <p class="small soft">{t.nodes('askSupport', { email: address })}</p>;
}
