import { callerNetwork } from '../callers/caller-network.ts';
import type { ApiContext } from './context.ts';

/**
 * Returns the party on whose behalf the request takes turns and memory: the API key's account, the session's user, the
 * operator's token, or the network if none is known.
 */
export function requesterOf(context: ApiContext): string {
  const { holder, session, admin } = context.state;
  if (admin !== undefined) return `admin:${admin.name}`;
  return holder?.accountId ?? session?.userId ?? callerNetwork(context.ip);
}

/**
 * Returns the party to which the limit of concurrent calls applies: an API account or a session. Each session of a user
 * has its own limit, so that a stolen session cannot block the calls that would end it.
 */
export function callsHolderOf(context: ApiContext): string {
  return context.state.session?._id ?? requesterOf(context);
}
