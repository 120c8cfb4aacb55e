import { hrefWith } from '../../lib/address-filters.ts';

/** Where causes are shown. */
export const modelHref = (id: string): string => `/admin/models?model=${encodeURIComponent(id)}`;
export const upstreamHref = (name: string): string =>
  `/admin/models?tab=upstreams&upstream=${encodeURIComponent(name)}`;
export const workHref = '/admin/work';
export const deadEntriesHref = '/admin?view=ledger';
/** Requests that were rejected before a model was called. */
export const rejectedHref = '/admin/requests?outcome=rejected';

/** The failed requests since a time. @param model null for all models */
export const failuresHref = (since: string, model: string | null = null): string =>
  hrefWith('/admin/requests', { outcome: 'error', model, since });
