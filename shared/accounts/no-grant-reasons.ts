/** Why a first account starts with nothing. */
export const noGrantReasons = [
  'network_limit',
  'disposable_email',
  'mailbox_granted',
  'already_granted',
  'not_offered',
] as const;
export type NoGrantReason = (typeof noGrantReasons)[number];
