/**
 * The policy of a page: everything comes from here, and nothing is written into the page itself.
 * @param imageOrigin where image links point to, if not to this server
 */
export function writePagePolicy(imageOrigin: string | null): string {
  const images = imageOrigin === null ? '' : ` ${imageOrigin}`;
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    `img-src 'self' blob: data:${images}`,
    "font-src 'self'",
    `connect-src 'self'${images}`,
    "worker-src 'self'",
    "manifest-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ].join('; ');
}

/** Of every page and of its files. */
export const fileHeaders = {
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
} as const;

export const pageHeaders = {
  ...fileHeaders,
  'x-frame-options': 'DENY',
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
} as const;

/** A logo that is opened by itself runs nothing. */
export const assetPolicy = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:";
