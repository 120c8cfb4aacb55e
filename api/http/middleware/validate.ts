import type { Operation } from '../../../shared/contract/operation.ts';
import { compileValidator } from '../../../shared/contract/validation.ts';
import type { ApiMiddleware } from '../request/context.ts';
import { readQueryString } from '../request/read-query-string.ts';

/** Validates path, query and body against the operation's schemas and fills in defaults. Parses no other query. */
export function validate(operation: Operation): ApiMiddleware {
  const { pathParameters } = operation;
  const validatePath = pathParameters === undefined ? null : compileValidator(pathParameters, 'path');
  const validateQuery = operation.query === undefined ? null : compileValidator(operation.query, 'query');
  const validateBody = operation.body === undefined ? null : compileValidator(operation.body, 'body');
  return async (context, next) => {
    if (validatePath !== null) context.state.path = validatePath({ ...context['params'] });
    if (validateQuery !== null) context.state.query = validateQuery(readQueryString(context.querystring));
    if (validateBody !== null) context.state.body = validateBody(context.state.body);
    await next();
  };
}
