import type { Config } from '../../shared/runtime/config.ts';
import type { ApiContext } from './request-context.ts';

/** Which token a cookie carries: what opens a session, or what refreshes one. */
export type SessionCookie = 'session' | 'refresh';

const isHttps = ({ publicUrl }: Pick<Config, 'publicUrl'>): boolean =>
  publicUrl?.startsWith('https:') === true;

/** Browsers take `__Host-` cookies only over https and for this host alone, so no neighbouring host can set them. */
const nameOf = (config: Pick<Config, 'publicUrl'>, cookie: SessionCookie): string =>
  `${isHttps(config) ? '__Host-' : ''}mg_${cookie}`;

export function readCookie(
  context: ApiContext,
  config: Pick<Config, 'publicUrl'>,
  cookie: SessionCookie,
): string | null {
  return context.cookies.get(nameOf(config, cookie)) ?? null;
}

/** @param expiresAt when the browser forgets it; null for at once */
export function setCookie(
  context: ApiContext,
  config: Pick<Config, 'publicUrl'>,
  cookie: SessionCookie,
  value: { readonly token: string; readonly expiresAt: Date } | null,
): void {
  // Work goes on after its caller was told 503 (`inDatabaseTurn`): then there is no answer left to put a cookie in.
  if (context.headerSent) return;
  const secure = isHttps(config);
  // Behind a proxy that terminates TLS our own socket is plain, and the library would refuse to set a secure cookie.
  if (secure) context.cookies.secure = true;
  context.cookies.set(nameOf(config, cookie), value?.token ?? '', {
    httpOnly: true,
    sameSite: 'lax',
    secure,
    path: '/',
    overwrite: true,
    // An empty cookie is one that expired long ago.
    ...(value === null ? {} : { maxAge: value.expiresAt.getTime() - Date.now() }),
  });
}

export function clearCookies(context: ApiContext, config: Pick<Config, 'publicUrl'>): void {
  setCookie(context, config, 'session', null);
  setCookie(context, config, 'refresh', null);
}
