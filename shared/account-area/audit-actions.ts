/** What users and operators do in the account area, as its audit log names it. */
export const auditActions = [
  'signed-up',
  'signed-in',
  'sign-in-refused',
  'signed-out',
  'sessions-revoked',
  'refresh-replayed',
  'timezone-changed',
  'account-created',
  'account-linked',
  'label-changed',
  'settings-changed',
  'account-unlinked',
  'key-revealed',
  'key-regenerated',
  'code-redeemed',
  'user-banned',
  'user-unbanned',
] as const;
export type AuditAction = (typeof auditActions)[number];
