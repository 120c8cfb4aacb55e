import type { Middleware, ParameterizedContext } from 'koa';
import type { KeyHolder } from '../../shared/accounts/api-key-store.ts';
import type { PreAdmission } from '../../shared/billing/pre-admit-script.ts';
import { AppError } from '../../shared/contract/errors.ts';
import type { BudgetShare } from '../../shared/fairness/fair-budget.ts';
import { shorten } from '../../shared/runtime/shorten.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import type { WebSession } from '../../shared/web/web-models.ts';
import { createTimeOrderedId } from '../../shared/runtime/time-ordered-id.ts';
import { findCallerAddress } from '../callers/caller-address.ts';
import { wasCutUnread } from '../callers/unread-callers.ts';
import { logAccess } from '../present/access-line.ts';
import type { CreationOptions } from './creation-options.ts';
import { normalizeTarget } from './normalize-target.ts';
import type { SessionCookie } from './session-cookies.ts';

/** What the steps before a handler have found out. */
export interface RequestState {
  /** Ours always: a caller's own X-Request-Id is not adopted. Ids of later requests sort after earlier ones. */
  requestId: string;
  /** Set by authenticate. */
  holder?: KeyHolder;
  /** Set by authenticateSession. */
  session?: WebSession;
  /** Whether the faults of a 422 are told in Russian as well. */
  translatesFaults?: true;
  /** By which cookie it was found. */
  sessionCookie?: SessionCookie;
  /** When it was looked up; by `performance.now`. */
  sessionFoundAtMs?: number;
  /** Of a request that was asked about before it was admitted: before its large body was read, or its text counted. */
  preAdmission?: PreAdmission;
  /** Set where the answer has left although its caller still sends. */
  isAnswered?: boolean;
  /** What the answer tells of: as the whole of it, or as the last event of a stream. */
  error?: AppError;
  /** What the headers of a request for a model's work ask for. */
  creation?: CreationOptions;
  /** What a large body holds of the memory for bodies until it is answered, of which so much stands for its texts. */
  bodyMemory?: { readonly share: BudgetShare; readonly textBytes: number };
  /** Set by validate. */
  path?: unknown;
  body?: unknown;
  query?: unknown;
}

export type ApiContext = ParameterizedContext<RequestState>;
export type ApiMiddleware = Middleware<RequestState>;

/**
 * Names the request and its caller's address, brings its target into the normal form, gives it a logger, writes its access
 * line when it has been answered.
 * @param trustsProxy whether a proxy before us says whose requests it passes on
 */
export function requestContext(log: Logger, trustsProxy = false): ApiMiddleware {
  return async (context, next) => {
    const startedAtMs = performance.now();
    // First of all: parsers of URLs throw at hosts that are none, in whatever asks for the path.
    context.url = normalizeTarget(context.url);
    const requestId = createTimeOrderedId();
    context.state.requestId = requestId;
    context.set('x-request-id', requestId);
    const forwardedFor = trustsProxy ? context.get('x-forwarded-for') : '';
    context.request.ip = findCallerAddress(context.socket.remoteAddress, forwardedFor);
    context.res.once('close', () => {
      const { method, path, status, state } = context;
      const isWhole = context.res.writableFinished || state.isAnswered === true;
      logAccess(log, {
        requestId,
        method,
        path,
        status: isWhole ? status : 499,
        startedAtMs,
        error: state.error,
        reason:
          !isWhole && wasCutUnread(context.req.socket) ? 'the caller did not read the answer' : undefined,
      });
    });
    await next();
  };
}

/** A doubled slash is a wrongly formed base URL; answering it as if it were right would hide that. */
export const refuseDoubledSlash: ApiMiddleware = async (context, next) => {
  if (context.path.includes('//')) {
    throw new AppError('not_found', {
      message: `There is nothing at ${shorten(context.path)}: the address has a doubled slash. Check the base URL.`,
    });
  }
  await next();
};
