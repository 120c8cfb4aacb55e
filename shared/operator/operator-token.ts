import { hash, timingSafeEqual } from 'node:crypto';

/** Longer headers are not compared. */
const maxHeaderLength = 4_096;

/**
 * Whether an Authorization header carries this token as a bearer token.
 * @param authorization the header's value, empty if there is none
 */
export function hasBearerToken(authorization: string, token: string): boolean {
  const given = readCredentials(authorization, 'bearer ');
  return given !== null && isSameText(given, token);
}

/**
 * Whether an Authorization header carries this token as the password of HTTP's basic authentication, as a browser sends
 * it. The user name does not matter.
 * @param authorization the header's value, empty if there is none
 */
export function hasPassword(authorization: string, token: string): boolean {
  const encoded = readCredentials(authorization, 'basic ');
  if (encoded === null) return false;
  const credentials = Buffer.from(encoded, 'base64').toString();
  const nameEnd = credentials.indexOf(':');
  return nameEnd >= 0 && isSameText(credentials.slice(nameEnd + 1), token);
}

/** @param scheme in lower case, with the space that follows it */
function readCredentials(authorization: string, scheme: string): string | null {
  if (authorization.length > maxHeaderLength) return null;
  if (authorization.slice(0, scheme.length).toLowerCase() !== scheme) return null;
  return authorization.slice(scheme.length).trim();
}

/** Compares digests, so that the time does not depend on how much of the token is right. */
function isSameText(given: string, token: string): boolean {
  const digest = (text: string): Buffer => hash('sha256', text, 'buffer');
  return timingSafeEqual(digest(given), digest(token));
}
