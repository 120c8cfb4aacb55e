import { useMessages } from '../../lib/language.tsx';
import { Reason } from '../../ui/reason.tsx';
import { cancelledStatus } from '../../ui/request-outcome.tsx';
import type en from './messages.en.ts';
import type { RequestRow } from './read-log.ts';

/** What the log says of a request: for one that failed, its code and the reason. */
export function Details({
  row: { success, response_code: status, details },
  isBrief = false,
}: {
  readonly row: Pick<RequestRow, 'success' | 'response_code' | 'details'>;
  readonly isBrief?: boolean;
}) {
  const t = useMessages<typeof en>();
  if (!success && status === cancelledStatus) return <>{t('cancelledText')}</>;
  const [, code, message] = (success ? null : /^(\w+): (.*)$/s.exec(details ?? '')) ?? [];
  if (code === undefined) return <Reason code={null} message={details ?? ''} isBrief={isBrief} />;
  return (
    <>
      {code}: <Reason code={code} message={message ?? ''} isBrief={isBrief} />
    </>
  );
}
