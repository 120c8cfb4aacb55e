/** Returns the HTTP origin of a server that listens on `host`, which may be an IPv6 address. */
export function formatHttpOrigin(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
