const signInPath = '/sign-in';

/** Returns a path of this site, whatever the address says: `next` may come from somebody else. */
export function readNextPath(next: string | null): string {
  if (next === null || !next.startsWith('/') || next.startsWith('//') || next.includes('\\')) return '/';
  const url = new URL(next, location.origin);
  if (url.origin !== location.origin || url.pathname === signInPath) return '/';
  // Without its dots, `/.//host` is `//host`, which would be followed to that host.
  if (url.pathname.startsWith('//')) return '/';
  return `${url.pathname}${url.search}${url.hash}`;
}

/** The sign-in page that returns to where the visitor is. */
export function signInHref(path = `${location.pathname}${location.search}`): string {
  return path === '/' ? signInPath : `${signInPath}?next=${encodeURIComponent(path)}`;
}
