import type { Step } from '../../endpoint.ts';
import { authenticateSession, forbidCaching } from '../../middleware/authenticate-session.ts';
import { beginInTurns } from '../../middleware/begin-in-turns.ts';
import { checkCsrf } from '../../middleware/check-csrf.ts';
import { checkOrigin } from '../../middleware/check-origin.ts';
import { limitCalls } from '../../middleware/limit-account-calls.ts';
import { translateFaults } from '../../middleware/translate-faults.ts';

/** Before a page's call that changes something, without a session. */
export const changeFromPage: readonly Step[] = [beginInTurns, forbidCaching, translateFaults, checkOrigin];

/** Before a page's call that reads something of the signed-in user. */
export const readAsUser: readonly Step[] = [beginInTurns, forbidCaching, authenticateSession, limitCalls];

/** Before a page's call that changes something of the signed-in user. */
export const changeAsUser: readonly Step[] = [...changeFromPage, authenticateSession, limitCalls, checkCsrf];
