import type { Middleware, ParameterizedContext } from 'koa';
import type { Operation } from '../../../shared/contract/operation.ts';
import type { PreAdmission } from '../../../shared/money/pre-admit-script.ts';
import type { AppError } from '../../../shared/contract/errors.ts';
import type { BudgetShare } from '../../../shared/fairness/fair-budget.ts';
import type { WebSession } from '../../../shared/account-area/web-models.ts';
import type { Span } from '../../../shared/platform/tracing/tracing.ts';
import type { RequestFacts } from '../../../shared/work/replies/request-facts.ts';
import type { AdminCaller } from '../../../shared/admin/admin-scope.ts';
import type { JobView } from '../../jobs/job-text.ts';
import type { AccountHolder } from './holder.ts';
import type { ModelRequestOptions } from './model-request-options.ts';
import type { SessionCookie } from './session-cookies.ts';
import type { WorkMeter } from './work-meter.ts';

/** State that middleware sets for the handler. */
export interface RequestState {
  /** Always generated here; a client's X-Request-Id is ignored. Ids sort by the time of the request. */
  requestId: string;
  /**
   * Aborts with `job_cancelled` when the response is closed: the client has disconnected, or has received all of it.
   */
  signal: AbortSignal;
  /** Set for a request to a model that is traced. */
  span?: Span;
  /** What a worker did for the request. Set shortly before the end of its response. */
  facts?: RequestFacts;
  /** Whether the response is that of an earlier request with the same Idempotency-Key. */
  isReplay?: true;
  /** When the first output of a stream was written, according to `performance.now` (ms). */
  firstOutputAtMs?: number;
  /** Set by meterRequests. */
  meter?: WorkMeter;
  /** The operation that the path and the method select; undefined if there is none. */
  operation?: Operation;
  /** The catalog's id of the model that the request names, once it is known to exist. */
  model?: string;
  /** Set by authenticateAccount. */
  holder?: AccountHolder;
  /** Set by authenticateSession. */
  session?: WebSession;
  /** Set by authenticateAdmin. */
  admin?: AdminCaller;
  /** Whether the issues of a 422 are also given in Russian. */
  translatesErrors?: true;
  /** The cookie that identified the session. */
  sessionCookie?: SessionCookie;
  /** When the session was looked up, according to `performance.now` (ms). */
  sessionFoundAtMs?: number;
  /** Set if the account was checked before admission: before a large body was read or the text was tokenized. */
  preAdmission?: PreAdmission;
  /** Set if the complete response was sent while the client is still sending. */
  isResponseSent?: boolean;
  /** The error reported in the response, either as its body or as the last event of a stream. */
  error?: AppError;
  /** Whether the response is a stream that the error ended. */
  isBroken?: true;
  /** Options that the headers of a request to a model set. */
  modelRequestOptions?: ModelRequestOptions;
  /** The job that the caller waits for. Set by the handler. */
  awaitedJob?: JobView;
  /** Memory reserved for a large body until its response is sent. `textBytes` is the part of it that is for texts. */
  bodyMemory?: { readonly share: BudgetShare; readonly textBytes: number };
  /** Set by validate. */
  path?: unknown;
  body?: unknown;
  query?: unknown;
}

export type ApiContext = ParameterizedContext<RequestState>;
export type ApiMiddleware = Middleware<RequestState>;
