// decision 0045
/** The only user of MongoDB, embedded or real, and of the SMTP server that `npm start` runs. */
export const embeddedUser = 'model-gateway';

/** Returns a server's URL with credentials, for its clients. */
export function addCredentials(url: string, password: string): string {
  return url.replace('//', `//${embeddedUser}:${encodeURIComponent(password)}@`);
}
