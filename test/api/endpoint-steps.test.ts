import test from 'ava';
import { endpoints } from '../../api/app.ts';
import type { Endpoint, Step } from '../../api/endpoint.ts';
import { authenticateAccount } from '../../api/account-area/steps/authenticate-account.ts';
import { authenticateSession, forbidCaching } from '../../api/account-area/steps/authenticate-session.ts';
import { authenticateAdmin, authenticateDemand } from '../../api/endpoints/admin/authenticate-admin.ts';
import { refuseUnknownQuery } from '../../api/endpoints/admin/define-admin-endpoint.ts';
import { authenticateMetrics } from '../../api/http/middleware/authenticate-metrics.ts';
import { beginInTurns } from '../../api/http/middleware/begin-in-turns.ts';
import { checkCsrf } from '../../api/account-area/steps/check-csrf.ts';
import { checkOrigin } from '../../api/account-area/steps/check-origin.ts';
import { clearDeadCookies } from '../../api/account-area/steps/clear-dead-cookies.ts';
import { readModelRequestOptions } from '../../api/http/middleware/read-model-request-options.ts';
import { limitCalls, limitStreams, limitWaits } from '../../api/http/middleware/limit-account-calls.ts';
import { limitChanges } from '../../api/account-area/steps/limit-changes.ts';
import { parseBody } from '../../api/http/middleware/parse-body.ts';
import { noteRejections } from '../../api/http/middleware/note-rejections.ts';
import { awaitJob } from '../../api/responses/await-job.ts';
import { translateErrors } from '../../api/account-area/steps/translate-errors.ts';
import {
  respondsAsStream,
  isAccountOperation,
  changesUserData,
  isWebOperation,
  hasUnsafeMethod,
  needsCsrfToken,
  translatesErrors,
  type Operation,
} from '../../shared/contract/operation.ts';

const findCallLimit = (operation: Operation): Step =>
  respondsAsStream(operation) ? limitStreams : operation.acceptsWait === true ? limitWaits : limitCalls;

/** The steps that the contract of an operation requires, in order. */
function requiredSteps(operation: Operation): Step[] {
  const { auth } = operation;
  const isWeb = isWebOperation(operation);
  const isCreation = operation.modelTypes !== undefined;
  const steps: readonly (readonly [boolean, ...Step[]])[] = [
    [auth !== 'key', beginInTurns],
    [isWeb, forbidCaching],
    [translatesErrors(operation), translateErrors],
    [isWeb && hasUnsafeMethod(operation), checkOrigin],
    [auth === 'metrics', operation.operationId === 'getDemand' ? authenticateDemand : authenticateMetrics],
    [auth === 'admin', authenticateAdmin, limitCalls],
    [auth === 'admin' && hasUnsafeMethod(operation), refuseUnknownQuery],
    [auth === 'key', authenticateAccount],
    [operation.acceptsRefreshCookie === true, clearDeadCookies],
    [auth === 'web', authenticateSession],
    [isCreation, noteRejections, readModelRequestOptions, awaitJob],
    [isAccountOperation(operation), findCallLimit(operation)],
    [needsCsrfToken(operation), checkCsrf],
    [changesUserData(operation), limitChanges],
    [operation.body !== undefined, parseBody],
  ];
  return steps.flatMap(([isRequired, ...required]) => (isRequired ? required : []));
}

for (const { operation, steps } of Object.values<Endpoint>(endpoints)) {
  test(`${operation.operationId} runs the steps that its contract requires, in order`, (t) => {
    const nameOf = (step: Step): string => step.name;
    t.deepEqual(steps.map(nameOf), requiredSteps(operation).map(nameOf));
    t.deepEqual(steps, requiredSteps(operation));
  });
}
