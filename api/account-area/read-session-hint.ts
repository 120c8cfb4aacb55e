import type { SessionStore } from '../../shared/account-area/session-store.ts';

/** What the cookies of a request say about its session. */
export type SessionHint = 'none' | 'active' | 'expired';

/**
 * Tells a page whether to expect a session, from the cookies alone: `expired` means that only a refresh may restore it. A
 * session may have been ended since, which the page's next call finds out. Browsers drop the access token when it expires.
 * Cookies that were not issued here count as none.
 * @param readCookie returns the value of one of our cookies, or null
 */
export function readSessionHint(
  sessions: Pick<SessionStore, 'isIssued'>,
  readCookie: (cookie: 'session' | 'refresh') => string | null,
): SessionHint {
  if (sessions.isIssued('access', readCookie('session') ?? '')) return 'active';
  return sessions.isIssued('refresh', readCookie('refresh') ?? '') ? 'expired' : 'none';
}
