import { Reason } from '../../ui/reason.tsx';
import type { RequestRow } from './read-log.ts';

/** What the log says of a request: for one that failed, its code and the reason. */
export function Details({
  row: { success, details },
}: {
  readonly row: Pick<RequestRow, 'success' | 'details'>;
}) {
  const [, code, message] = (success ? null : /^(\w+): (.*)$/s.exec(details ?? '')) ?? [];
  if (code === undefined) return <>{details}</>;
  return (
    <>
      {code}: <Reason code={code} message={message ?? ''} />
    </>
  );
}
