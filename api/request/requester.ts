import { callerNetwork } from '../callers/caller-network.ts';
import type { ApiContext } from './context.ts';

/**
 * Returns the party that turns and memory are shared by: the API key's account, the session's user, or the network if
 * neither is known.
 */
export function requesterOf(context: ApiContext): string {
  const { holder, session } = context.state;
  return holder?.accountId ?? session?.userId ?? callerNetwork(context.ip);
}

/**
 * Returns the party whose concurrent calls are counted together: an API account or a session. Sessions of one user
 * count separately, so that a stolen session cannot block the calls that would end it.
 */
export function callsHolderOf(context: ApiContext): string {
  return context.state.session?._id ?? requesterOf(context);
}
