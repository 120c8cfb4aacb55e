import type { components } from '../generated/api.d.ts';

export type WebConfig = components['schemas']['WebConfig'];

const readMeta = (name: string): string =>
  document.querySelector(`meta[name="${name}"]`)?.getAttribute('content') ?? '';

/** The service's configuration, which the server writes into each page. */
export const config = JSON.parse(readMeta('config')) as WebConfig;

/** What the cookies said about the session when the page was loaded. `expired`: a refresh may restore it. */
export const sessionHint = readMeta('session') as 'none' | 'active' | 'expired';
