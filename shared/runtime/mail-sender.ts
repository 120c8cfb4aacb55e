import { domainToASCII } from 'node:url';

/** The sender of our mails. */
export interface MailSender {
  /** Empty where only an address was given. */
  readonly name: string;
  readonly address: string;
}

/** What the service is called where `MAIL_FROM` has no name. */
export const defaultServiceName = 'Model Gateway';

/** What the service is called, in mails and by the pages of the account area. */
export const nameService = (sender: MailSender): string => sender.name || defaultServiceName;

/** RFC 5321, 4.5.3.1: the longest address that a mail server has to take. */
const maxAddressLength = 254;

/** No characters that end a line or an address in a header, and none that need quoting. */
const localPart = /^[^\s\p{Cc}\p{Cf}"(),:;<>@[\\\]]{1,64}$/u;

/** Whether the text is one address that needs no quoting. What users type is read more strictly, where it comes in. */
export function isMailAddress(text: string): boolean {
  const at = text.lastIndexOf('@');
  if (text.length > maxAddressLength || !localPart.test(text.slice(0, Math.max(at, 0)))) return false;
  const domain = domainToASCII(text.slice(at + 1));
  return /^[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})*$/.test(domain);
}

/** Reads `Name <address>` or an address alone. @returns null where it is neither, or holds control characters */
export function readMailSender(text: string): MailSender | null {
  if (/\p{Cc}/u.test(text)) return null;
  const [, name = '', address = text.trim()] = /^([^<>]*)<([^<>]+)>\s*$/.exec(text) ?? [];
  // A name in quotes, as headers have it.
  const plainName = name.trim().replace(/^"(.*)"$/, '$1');
  return isMailAddress(address) ? { name: plainName, address } : null;
}
