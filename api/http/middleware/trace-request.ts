import type { Operation } from '../../../shared/contract/operation.ts';
import { maskSecrets } from '../../../shared/contract/mask-secrets.ts';
import { genAiOperations } from '../../../shared/contract/gen-ai.ts';
import { isTraceparent, maxTracestateLength } from '../../../shared/platform/tracing/traceparent.ts';
import type { TraceContext, Tracing } from '../../../shared/platform/tracing/tracing.ts';
import type { ApiContext, ApiMiddleware } from '../request/context.ts';

/**
 * Starts the span of a request to a model. `requestContext` ends it.
 * @param route the operation's path, with its version
 */
export function traceRequest(
  tracing: Tracing,
  { method, modelTypes }: Pick<Operation, 'method' | 'modelTypes'>,
  route: string,
): ApiMiddleware {
  const httpMethod = method.toUpperCase();
  const name = `${httpMethod} ${route}`;
  const operation = genAiOperations[modelTypes![0]!];
  return (context, next) => {
    const caller = readTraceContext(context);
    context.state.span = tracing.startSpan({
      name,
      kind: 'server',
      ...(caller !== null && (tracing.trustsTraceparent ? { parent: caller } : { links: [caller] })),
      attributes: {
        'http.request.method': httpMethod,
        'http.route': route,
        'url.path': maskSecrets(context.path),
        'url.scheme': context.protocol,
        'gen_ai.operation.name': operation,
      },
    });
    return next();
  };
}

/** Returns the caller's own trace, or null if there is none, or if its `traceparent` is not valid. */
function readTraceContext(context: ApiContext): TraceContext | null {
  const { traceparent, tracestate } = context.req.headers;
  if (typeof traceparent !== 'string' || !isTraceparent(traceparent)) return null;
  const hasState = typeof tracestate === 'string' && tracestate.length <= maxTracestateLength;
  return { traceparent, ...(hasState && { tracestate }) };
}
