import test from 'ava';
import { endpoints } from '../../api/app.ts';
import type { Endpoint, Step } from '../../api/endpoint.ts';
import { authenticateSession, forbidCaching } from '../../api/middleware/authenticate-session.ts';
import { authenticate } from '../../api/middleware/authenticate.ts';
import { beginInTurns } from '../../api/middleware/begin-in-turns.ts';
import { checkCsrf } from '../../api/middleware/check-csrf.ts';
import { checkOrigin } from '../../api/middleware/check-origin.ts';
import { clearDeadCookies } from '../../api/middleware/clear-dead-cookies.ts';
import { readModelRequestOptions } from '../../api/middleware/read-model-request-options.ts';
import { limitCalls, limitStreams } from '../../api/middleware/limit-account-calls.ts';
import { limitChanges } from '../../api/middleware/limit-changes.ts';
import { parseBody } from '../../api/middleware/parse-body.ts';
import { noteRefusals } from '../../api/middleware/note-refusals.ts';
import { translateErrors } from '../../api/middleware/translate-errors.ts';
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
    [auth === 'key', authenticate],
    [operation.acceptsRefreshCookie === true, clearDeadCookies],
    [auth === 'web', authenticateSession],
    [isCreation, noteRefusals, readModelRequestOptions],
    [isAccountOperation(operation), respondsAsStream(operation) ? limitStreams : limitCalls],
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
