import { domainToASCII } from 'node:url';

/** The sender of our mails. */
export interface MailSender {
  /** Empty if only an address was given. */
  readonly name: string;
  readonly address: string;
}

/** Service name if `MAIL_FROM` has no name. */
export const defaultServiceName = 'Model Gateway';

/** Returns the service name for mails and the pages of the account area. */
export const serviceNameOf = (sender: MailSender): string => sender.name || defaultServiceName;

/** RFC 5321, 4.5.3.1: the longest address that a mail server must accept. */
const maxAddressLength = 254;

/** Excludes characters that end a line or an address in a header, and those that need quoting. */
const localPart = /^[^\s\p{Cc}\p{Cf}"(),:;<>@[\\\]]{1,64}$/u;

/**
 * Returns whether the text is one address that needs no quoting. User input is validated more strictly where it is
 * received.
 */
export function isMailAddress(text: string): boolean {
  // `domainToASCII` drops line breaks.
  if (/\p{Cc}/u.test(text)) return false;
  const at = text.lastIndexOf('@');
  if (text.length > maxAddressLength || !localPart.test(text.slice(0, Math.max(at, 0)))) return false;
  const domain = domainToASCII(text.slice(at + 1));
  return /^[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})*$/.test(domain);
}

/**
 * Reads `Name <address>` or an address alone.
 * @returns null if it is neither, or contains control characters
 */
export function readMailSender(text: string): MailSender | null {
  if (/\p{Cc}/u.test(text)) return null;
  const [, name = '', address = text.trim()] = /^([^<>]*)<([^<>]+)>\s*$/.exec(text) ?? [];
  // Headers may put the name in quotes.
  const plainName = name.trim().replace(/^"(.*)"$/, '$1');
  return isMailAddress(address) ? { name: plainName, address } : null;
}
