import type { Config } from '../../../shared/platform/config/config.ts';
import type { ApiContext } from './context.ts';

/** Which token a cookie carries: the session's access token or its refresh token. */
export type SessionCookie = 'session' | 'refresh';

const isHttps = ({ publicUrl }: Pick<Config, 'publicUrl'>): boolean =>
  publicUrl?.startsWith('https:') === true;

/** Any of our cookies. `admin` is the session of an operator. */
type OurCookie = SessionCookie | 'admin';

/** Browsers accept `__Host-` cookies only over https and only from this exact host, so no sibling host can set them. */
const nameOf = (config: Pick<Config, 'publicUrl'>, cookie: OurCookie): string =>
  `${isHttps(config) ? '__Host-' : ''}mg_${cookie}`;

export function readCookie(
  context: ApiContext,
  config: Pick<Config, 'publicUrl'>,
  cookie: OurCookie,
): string | null {
  return context.cookies.get(nameOf(config, cookie)) ?? null;
}

/** @param expiresAt when the browser drops the cookie; a null value clears it */
export function setCookie(
  context: ApiContext,
  config: Pick<Config, 'publicUrl'>,
  cookie: OurCookie,
  value: { readonly token: string; readonly expiresAt: Date } | null,
): void {
  // `inDatabaseTurn` lets work continue after its caller has received a 503. It is then too late to set a cookie.
  if (context.headerSent) return;
  const secure = isHttps(config);
  // Behind a TLS-terminating proxy, our own socket is not encrypted, and the library would not set a secure cookie.
  if (secure) context.cookies.secure = true;
  context.cookies.set(nameOf(config, cookie), value?.token ?? '', {
    httpOnly: true,
    sameSite: cookie === 'admin' ? 'strict' : 'lax',
    secure,
    path: '/',
    overwrite: true,
    // Without maxAge, the library sends an empty cookie as already expired.
    ...(value === null ? {} : { maxAge: value.expiresAt.getTime() - Date.now() }),
  });
}

export function clearCookies(context: ApiContext, config: Pick<Config, 'publicUrl'>): void {
  setCookie(context, config, 'session', null);
  setCookie(context, config, 'refresh', null);
}
