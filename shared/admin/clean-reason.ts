import { maskTypedSecrets } from '../contract/mask-secrets.ts';

/** Returns the reason of a change as it is stored: without keys, tokens and codes that were pasted into it. */
export const cleanReason = (text: string): string => maskTypedSecrets(text.trim());
