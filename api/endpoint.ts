import type { Static, TSchema } from 'typebox';
import type { Operation } from '../shared/contract/operation.ts';
import { fullPathOf } from './description/describe-operation.ts';
import { meterWork } from './http/middleware/meter-work.ts';
import { traceRequest } from './http/middleware/trace-request.ts';
import { validate } from './http/middleware/validate.ts';
import type { ApiContext, ApiMiddleware } from './http/request/context.ts';
import type { Services } from './services.ts';

/** The type that a schema validates; undefined for an operation without that schema. */
type ValueOf<S> = S extends TSchema ? Static<S> : undefined;

/** The parts of a request that the operation's schemas have validated. */
interface Validated<O extends Operation> {
  readonly body: ValueOf<O['body']>;
  readonly query: ValueOf<O['query']>;
  readonly path: ValueOf<O['pathParameters']>;
}

/** The context of a handler: `state` contains the request's body, query and path parameters, typed by the contract. */
export type ContextOf<O extends Operation> = ApiContext & { readonly state: Validated<O> };

/** Creates middleware that runs before the handler of an operation. */
export type Step = (services: Services, operation: Operation) => ApiMiddleware;

/** An operation of the contract with the middleware that serves it. */
export interface Endpoint<O extends Operation = Operation> {
  readonly operation: O;
  readonly steps: readonly Step[];
  readonly createHandler: (services: Services) => ApiMiddleware;
}

/**
 * Defines how an operation is served: by its steps in order, then validation by its schemas, then its handler.
 * @param createHandler called once per app
 */
export function defineEndpoint<const O extends Operation>(
  operation: O,
  steps: readonly Step[],
  createHandler: (services: Services) => (context: ContextOf<O>) => Promise<void>,
): Endpoint<O> {
  // Safe, because validation runs right before the handler and ensures the types that it requires.
  return { operation, steps, createHandler: createHandler as Endpoint['createHandler'] };
}

/** Notes the operation, so that a request that ends before its handler is counted for it. */
const noteOperation =
  (operation: Operation): ApiMiddleware =>
  (context, next) => {
    context.state.operation = operation;
    return next();
  };

/** Creates the middleware that serves an operation, in order. */
export const createStack = (
  { operation, steps, createHandler }: Endpoint,
  services: Services,
): ApiMiddleware[] => [
  noteOperation(operation),
  ...(services.tracing !== null && operation.modelTypes !== undefined
    ? [traceRequest(services.tracing, operation, fullPathOf(operation))]
    : []),
  ...[
    ...steps.map((createStep) => createStep(services, operation)),
    validate(operation),
    createHandler(services),
  ].map(meterWork),
];
