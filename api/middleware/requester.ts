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
 * Who may have so many calls under way at once: the account of the API key, or the session. Sessions of one user are
 * counted apart, so that somebody who has stolen one cannot keep the user's others from ending it.
 */
export function callsHolderOf(context: ApiContext): string {
  return context.state.session?._id ?? requesterOf(context);
}
