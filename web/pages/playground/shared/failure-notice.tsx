import type { ComponentChildren } from 'preact';
import { SiteLink } from '../../../frame/site-link.tsx';
import { useCommon, useLanguage, useMessages } from '../../../lib/language.tsx';
import { CopyButton } from '../../../ui/copy.tsx';
import { Notice } from '../../../ui/notice.tsx';
import { Reason } from '../../../ui/reason.tsx';
import type en from '../messages.en.ts';
import type { Failure } from './failure.ts';

/** What went wrong, what to do, and the id to quote. */
export function FailureNotice({
  failure,
  children,
}: {
  readonly failure: Failure;
  /** What to do next. */
  readonly children?: ComponentChildren;
}) {
  const t = useMessages<typeof en>();
  const common = useCommon();
  const language = useLanguage();
  const { code, text, requestId, retryAfterSeconds } = failure;
  return (
    <div role="alert">
      <Notice tone="bad" title={t('failed')}>
        <div>{text.ru === text.en ? <Reason code={code} message={text.en} /> : text[language]}</div>
        {code === 'insufficient_balance' && (
          <p>
            <SiteLink href="/keys">{t('topUp')}</SiteLink>
          </p>
        )}
        {retryAfterSeconds !== null && <p>{t('retryAfter', { count: retryAfterSeconds })}</p>}
        {requestId !== null && (
          <p class="request-id playground-id">
            {common('requestId')} <code>{requestId}</code>
            <CopyButton text={requestId} label={t('copyRequestId')} />
          </p>
        )}
        {children}
      </Notice>
    </div>
  );
}
