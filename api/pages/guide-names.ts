/** The guides, in the order of the navigation. Each is a file in `docs/guides/<language>/`. */
export const guideNames = [
  'first-request',
  'streaming',
  'images',
  'jobs',
  'batches',
  'webhooks',
  'errors',
  'limits',
  'clients',
] as const;
export type GuideName = (typeof guideNames)[number];
