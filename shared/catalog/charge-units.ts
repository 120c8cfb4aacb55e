/** What prices are for, in the order in which a cost is broken down. Those of tokens and characters are per million. */
export const chargeUnits = [
  'prompt',
  'cached_prompt',
  'cache_write',
  'completion',
  'image',
  'second',
  'characters',
  'request',
] as const;
export type ChargeUnit = (typeof chargeUnits)[number];
