/**
 * Returns where a page loads an image of the gateway from. A link has the public address, which may be another than
 * that of the page.
 */
export function imageSource(url: string): string {
  if (!URL.canParse(url)) return url;
  const { pathname } = new URL(url);
  return pathname.startsWith('/files/') ? pathname : url;
}
