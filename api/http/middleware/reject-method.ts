import { AppError } from '../../../shared/contract/errors.ts';
import { fullPathOf } from '../../description/describe-operation.ts';
import type { Operation } from '../../../shared/contract/operation.ts';
import { operations } from '../../contract/operations.ts';
import { maskSecrets } from '../../../shared/contract/mask-secrets.ts';
import { shorten } from '../../../shared/platform/runtime/shorten.ts';
import type { ApiContext, ApiMiddleware } from '../request/context.ts';

/** The methods of an operation. Every path with GET also takes HEAD. */
export function methodsOf({ method }: Operation): readonly string[] {
  return method === 'get' ? ['HEAD', 'GET'] : [method.toUpperCase()];
}

/** The methods of each path without parameters. */
const methodsOfPath = new Map<string, Set<string>>();
for (const operation of Object.values<Operation>(operations)) {
  const path = fullPathOf(operation);
  if (path.includes('{')) continue;
  const methods = methodsOfPath.get(path) ?? new Set();
  for (const method of methodsOf(operation)) methods.add(method);
  methodsOfPath.set(path, methods);
}

/** Whether the path is that of an operation without parameters. */
export const isFixedPath = (path: string): boolean => methodsOfPath.has(path);

/** Whether the path without parameters supports the method. */
export const supportsMethod = (path: string, method: string): boolean =>
  methodsOfPath.get(path)?.has(method) === true;

const methodsOfPatterns = new Set(['HEAD', 'GET', 'POST', 'PUT', 'PATCH', 'DELETE']);

/**
 * To the router, `GET /web/api-accounts/link` matches `/web/api-accounts/{account_id}`. Rejects methods that a path
 * without parameters would only accept because it matches such a pattern.
 */
export const rejectMethodOfFixedPath: ApiMiddleware = async (context, next) => {
  const methods = methodsOfPath.get(context.path);
  if (methods !== undefined && methodsOfPatterns.has(context.method) && !methods.has(context.method))
    throw methodNotAllowed(context, 405, [...methods].join(', '));
  await next();
};

/** Converts the router's error for an unsupported method to our error format. */
export const rejectMethod: ApiMiddleware = async (context, next) => {
  await next();
  if (context.status !== 405 && context.status !== 501) return;
  throw methodNotAllowed(context, context.status, context.response.get('allow'));
};

const methodNotAllowed = ({ path, method }: ApiContext, status: number, allow: string): AppError =>
  new AppError('method_not_allowed', {
    status,
    message: `${maskSecrets(shorten(path))} does not support ${method}. Supported methods: ${allow}.`,
    headers: { allow },
  });
