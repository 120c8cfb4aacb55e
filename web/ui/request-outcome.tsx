import { useCommon } from '../lib/language.tsx';
import { Badge } from './card.tsx';

/** The status of requests whose caller left. */
export const cancelledStatus = 499;

/** How a request failed. One that its caller ended is no failure of the service. */
export function FailureBadge({ code }: { readonly code: number }) {
  const common = useCommon();
  return code === cancelledStatus ? (
    <Badge tone="neutral">{common('cancelled')}</Badge>
  ) : (
    <Badge tone="bad">{common('failedWith', { code: String(code) })}</Badge>
  );
}
