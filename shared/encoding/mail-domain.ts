import { domainToASCII } from 'node:url';

/** Letters of any script. `domainToASCII` alone would accept more: it reads `%41` as an A. */
const allowedDomain = /^[\p{L}\p{M}\p{N}.。．｡-]+$/u;
const allowedLabel = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/**
 * Returns a mail domain in lower-case ASCII (IDNA), or null if the text is not a mail domain. A numeric last label would
 * make it an IPv4 address.
 */
export function normalizeMailDomain(text: string): string | null {
  const domain = toAsciiDomain(text);
  if (domain === null || domain === 'localhost') return domain;
  return domain.includes('.') && !/(?:^|\.)\d+$/.test(domain) ? domain : null;
}

/** Like `normalizeMailDomain`, but also accepts a single label, such as a top-level domain. */
export function toAsciiDomain(text: string): string | null {
  if (!allowedDomain.test(text)) return null;
  // Since Node 24, all-ASCII domains are not checked for broken IDNA. With an ideographic full stop, which IDNA reads
  // as a dot, every version checks them.
  const domain = domainToASCII(text.includes('.') ? text.replaceAll('.', '。') : text);
  return domain.split('.').every((label) => allowedLabel.test(label)) ? domain : null;
}

/** The domain and its parents, from the longest: `a.b.test`, `b.test`, `test`. */
export function listParentDomains(domain: string): string[] {
  const labels = domain.split('.');
  return labels.map((_, i) => labels.slice(i).join('.'));
}
