import type { ApiMiddleware } from '../../http/request/context.ts';

/** Adds Russian texts to the issues of a 422. */
export const translateErrors = (): ApiMiddleware => async (context, next) => {
  context.state.translatesErrors = true;
  await next();
};
