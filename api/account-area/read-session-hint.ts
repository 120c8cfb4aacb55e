/** What the cookies of a request say about its session, without looking it up. */
export type SessionHint = 'none' | 'active' | 'expired';

/**
 * Tells pages whether to expect a session: `expired` means that a refresh may restore it.
 * @param readCookie returns the value of one of our cookies, or null
 */
export function readSessionHint(readCookie: (cookie: 'session' | 'refresh') => string | null): SessionHint {
  if (readCookie('session') !== null) return 'active';
  return readCookie('refresh') === null ? 'none' : 'expired';
}
