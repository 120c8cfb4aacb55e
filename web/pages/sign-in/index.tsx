import { useEffect, useState } from 'preact/hooks';
import { useLocation, useSearchParams } from 'wouter-preact';
import { useMessages } from '../../lib/language.tsx';
import { readNextPath } from '../../lib/next-path.ts';
import { config } from '../../lib/page-facts.ts';
import { findPage } from '../../lib/pages.ts';
import { useSession } from '../../lib/session.ts';
import { Skeleton } from '../../ui/states.tsx';
import { CaptchaStep } from './captcha-step.tsx';
import { CodeStep } from './code-step.tsx';
import { EmailStep } from './email-step.tsx';
import type en from './messages.en.ts';
import { useCodeRequest } from './request-code.ts';
import './sign-in.css';

export default function SignInPage() {
  const { status } = useSession();
  const goOn = useGoOn();
  useEffect(() => {
    // Somebody who has a session needs no other.
    if (status === 'active') goOn();
  }, [status]);
  return (
    <div class="page sign-in">
      <div class="sign-in-card">{status === 'none' ? <SignIn /> : <Skeleton lines={5} />}</div>
    </div>
  );
}

/** Returns a function that goes to where the visitor wanted to go. */
function useGoOn(): () => void {
  const [search] = useSearchParams();
  const [, navigate] = useLocation();
  return () => {
    const next = readNextPath(search.get('next'));
    // Other pages are rendered by the server.
    if (findPage(next.split(/[?#]/)[0]!).name === 'not-found') location.assign(next);
    else navigate(next, { replace: true });
  };
}

function SignIn() {
  const t = useMessages<typeof en>();
  const [email, setEmail] = useState('');
  const request = useCodeRequest();
  const { step } = request;
  if (step.name === 'code')
    return <CodeStep email={email} challengeId={step.challengeId} request={request} key={step.challengeId} />;
  if (step.name === 'captcha') return <CaptchaStep email={email} request={request} />;
  return (
    <>
      <h1>{t(config.signup_enabled ? 'titleWithSignup' : 'title')}</h1>
      <EmailStep email={email} onChange={setEmail} request={request} />
    </>
  );
}
