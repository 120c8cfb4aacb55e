/** What operators are told about, in the order of how much of the service it stops. */
export const conditionNames = [
  'redis_unreachable',
  'redis_memory',
  'redis_evicts',
  'no_workers',
  'worker_faults',
  'ledger_behind',
  'ledger_dead_entries',
  'mongodb_unreachable',
  'storage_unreachable',
  'upstream_key_refused',
] as const;
export type ConditionName = (typeof conditionNames)[number];
