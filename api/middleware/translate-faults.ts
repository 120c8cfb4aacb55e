import type { ApiMiddleware } from './request-context.ts';

/** People read on a page what was wrong: the faults of a 422 are told in Russian as well. */
export const translateFaults: ApiMiddleware = async (context, next) => {
  context.state.translatesFaults = true;
  await next();
};
