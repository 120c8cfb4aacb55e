/** The one user of the MongoDB, embedded or real, and of the SMTP server that `npm start` runs. */
export const embeddedUser = 'model-gateway';

/** A server's URL as its clients are given it: with what opens it. */
export function addCredentials(url: string, password: string): string {
  return url.replace('//', `//${embeddedUser}:${encodeURIComponent(password)}@`);
}
