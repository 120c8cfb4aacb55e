import { callerNetwork } from '../callers/caller-network.ts';
import type { ApiContext } from './request-context.ts';

/**
 * Who takes turns and shares memory with others: the account of the API key, the user of the session, and where neither
 * is known the network that the request comes from.
 */
export function requesterOf(context: ApiContext): string {
  const { holder, session } = context.state;
  return holder?.accountId ?? session?.userId ?? callerNetwork(context.ip);
}

/**
 * Whose calls under way are counted together: those of one API account, or of one session. Sessions of the same user are
 * counted separately, so that somebody who has stolen one cannot keep the others from ending it.
 */
export function callsHolderOf(context: ApiContext): string {
  return context.state.session?._id ?? requesterOf(context);
}
