import { normalizeTarget } from './normalize-target.ts';
import type { ApiMiddleware } from './request-context.ts';

/** Brings the address into its normal form, before parsers that throw at others see it, if only to log the path. */
export const checkHead: ApiMiddleware = async (context, next) => {
  context.url = normalizeTarget(context.url);
  await next();
};
