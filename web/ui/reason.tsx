import { useReason } from '../lib/error-kinds.ts';

/** Why something failed, in the user's language. Its place is kept while that is loading. */
export const Reason = ({ code, message }: { readonly code: string | null; readonly message: string }) => (
  <>{useReason(code, message) ?? '…'}</>
);
