import type { ApiMiddleware } from './request-context.ts';

/** Has the faults of a 422 told in Russian as well. */
export const translateFaults: ApiMiddleware = async (context, next) => {
  context.state.translatesFaults = true;
  await next();
};
