/** The one user that `npm start` makes of its MongoDB, embedded or real. */
export const mongoUser = 'model-gateway';

/** A server's URL as its clients are given it: with what opens it. */
export function addCredentials(url: string, password: string): string {
  return url.replace('//', `//${mongoUser}:${encodeURIComponent(password)}@`);
}
