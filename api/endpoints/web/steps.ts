import type { Step } from '../../endpoint.ts';
import { authenticateSession, forbidCaching } from '../../middleware/authenticate-session.ts';
import { beginInTurns } from '../../middleware/begin-in-turns.ts';
import { checkCsrf } from '../../middleware/check-csrf.ts';
import { checkOrigin } from '../../middleware/check-origin.ts';
import { limitCalls } from '../../middleware/limit-account-calls.ts';
import { translateErrors } from '../../middleware/translate-errors.ts';

/** Steps of operations that web pages call to change something without a session. */
export const changeFromPage: readonly Step[] = [beginInTurns, forbidCaching, translateErrors, checkOrigin];

/** Steps of operations that web pages call to read data of the signed-in user. */
export const readAsUser: readonly Step[] = [beginInTurns, forbidCaching, authenticateSession, limitCalls];

/** Steps of operations that web pages call to change data of the signed-in user. */
export const changeAsUser: readonly Step[] = [...changeFromPage, authenticateSession, limitCalls, checkCsrf];
