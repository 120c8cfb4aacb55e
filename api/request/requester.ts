import { callerNetwork } from '../callers/caller-network.ts';
import type { ApiContext } from './context.ts';

/**
 * Identifies who takes turns and shares memory with others: the API key's account, the session's user, or the network if
 * neither is known.
 */
export function requesterOf(context: ApiContext): string {
  const { holder, session } = context.state;
  return holder?.accountId ?? session?.userId ?? callerNetwork(context.ip);
}

/**
 * Identifies whose concurrent calls are counted together: an API account's or a session's. Sessions of one user count
 * separately, so that a stolen one cannot be used to keep the others from ending it.
 */
export function callsHolderOf(context: ApiContext): string {
  return context.state.session?._id ?? requesterOf(context);
}
