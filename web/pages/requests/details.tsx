import { useMessages } from '../../lib/language.tsx';
import { Badge } from '../../ui/card.tsx';
import { Reason } from '../../ui/reason.tsx';
import type en from './messages.en.ts';
import type { RequestRow } from './read-log.ts';

/** The status of requests whose caller left. */
const cancelledStatus = 499;

/** How a request failed. One that its caller ended is no failure of the service. */
export function FailureBadge({ code }: { readonly code: number }) {
  const t = useMessages<typeof en>();
  return code === cancelledStatus ? (
    <Badge tone="neutral">{t('cancelled')}</Badge>
  ) : (
    <Badge tone="bad">{t('failedWith', { code: String(code) })}</Badge>
  );
}

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
