import type { Step } from '../../endpoint.ts';
import { authenticateSession, forbidCaching } from '../steps/authenticate-session.ts';
import { beginInTurns } from '../../http/middleware/begin-in-turns.ts';
import { checkCsrf } from '../steps/check-csrf.ts';
import { checkOrigin } from '../steps/check-origin.ts';
import { limitCalls } from '../../http/middleware/limit-account-calls.ts';
import { translateErrors } from '../steps/translate-errors.ts';

/** Steps of operations that web pages call to change something without a session. */
export const changeFromPage: readonly Step[] = [beginInTurns, forbidCaching, translateErrors, checkOrigin];

/** Steps of operations that web pages call to read data of the signed-in user. */
export const readAsUser: readonly Step[] = [beginInTurns, forbidCaching, authenticateSession, limitCalls];

/** Steps of operations that web pages call to change data of the signed-in user. */
export const changeAsUser: readonly Step[] = [...changeFromPage, authenticateSession, limitCalls, checkCsrf];
