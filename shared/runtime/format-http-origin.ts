/** The origin of a server that listens on `host`, which may be an address of IPv6. */
export function formatHttpOrigin(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
