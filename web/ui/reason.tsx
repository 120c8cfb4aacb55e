import { useReason } from '../lib/error-kinds.ts';
import { useCommon } from '../lib/language.tsx';

/**
 * Why something failed, in the user's language; the original text, where it says more, is one click away. Its place is
 * kept while that is loading.
 */
export function Reason({
  code,
  message,
  isBrief = false,
}: {
  readonly code: string | null;
  readonly message: string;
  /** In a list whose rows lead to the whole. */
  readonly isBrief?: boolean;
}) {
  const common = useCommon();
  const reason = useReason(code, message);
  if (reason === null) return <>…</>;
  const { text, original } = reason;
  return (
    <>
      {text}
      {original !== null && !isBrief && (
        <details class="reason-original small">
          <summary>{common('originalText')}</summary>
          <span lang="en">{original}</span>
        </details>
      )}
    </>
  );
}
