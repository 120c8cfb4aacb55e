import { useCommon } from '../lib/language.tsx';
import { Badge } from './card.tsx';

/** The status of requests whose caller left. */
export const cancelledStatus = 499;

/** How a request failed. One that its caller ended, or that was rejected, is no failure of the service. */
export function FailureBadge({
  code,
  isRejected = false,
}: {
  readonly code: number;
  readonly isRejected?: boolean;
}) {
  const common = useCommon();
  if (isRejected) return <Badge tone="warning">{common('rejectedWith', { code: String(code) })}</Badge>;
  return code === cancelledStatus ? (
    <Badge tone="neutral">{common('cancelled')}</Badge>
  ) : (
    <Badge tone="bad">{common('failedWith', { code: String(code) })}</Badge>
  );
}
