/** What operators change, as the audit log names it. */
export const resourceTypes = [
  'account',
  'code',
  'model',
  'upstream',
  'queue',
  'job',
  'batch',
  'user',
  'token',
  'ledger',
] as const;
export type ResourceType = (typeof resourceTypes)[number];

/** The changes that operators make: the type of the resource, a dot, and the verb of the command. */
const adminActions = [
  'account.create',
  'account.update',
  'account.credit',
  'account.ban',
  'account.unban',
  'account.rotate-key',
  'account.webhook-secret',
  'code.create',
  'code.revoke',
  'model.enable',
  'model.disable',
  'model.test',
  'upstream.reset',
  'upstream.drain',
  'upstream.undrain',
  'queue.drain',
  'queue.retry',
  'job.cancel',
  'batch.cancel',
  'batch.retry',
  'user.ban',
  'user.unban',
  'user.revoke-sessions',
  'user.unlink',
  'token.create',
  'token.revoke',
  'ledger.discard',
  'ledger.release-orphans',
] as const;
export type AdminAction = (typeof adminActions)[number];
