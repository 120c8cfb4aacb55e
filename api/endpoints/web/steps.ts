import type { Step } from '../../endpoint.ts';
import { authenticateSession, forbidCaching } from '../../middleware/authenticate-session.ts';
import { beginInTurns } from '../../middleware/begin-in-turns.ts';
import { checkCsrf } from '../../middleware/check-csrf.ts';
import { checkOrigin } from '../../middleware/check-origin.ts';
import { limitCalls } from '../../middleware/limit-account-calls.ts';
import { translateErrors } from '../../middleware/translate-errors.ts';

/** For calls from pages that change something without a session. */
export const changeFromPage: readonly Step[] = [beginInTurns, forbidCaching, translateErrors, checkOrigin];

/** For calls from pages that read data of the signed-in user. */
export const readAsUser: readonly Step[] = [beginInTurns, forbidCaching, authenticateSession, limitCalls];

/** For calls from pages that change data of the signed-in user. */
export const changeAsUser: readonly Step[] = [...changeFromPage, authenticateSession, limitCalls, checkCsrf];
