import { domainToASCII } from 'node:url';

/** RFC 5321, 4.5.3.1. The maximum length is what fits between the brackets of a path of 256. */
const maxLocalLength = 64;
const maxLength = 254;
/**
 * Longer text is refused without parsing. This leaves some room for surrounding spaces and for addresses that are
 * shorter in ASCII.
 */
const maxTextLength = 320;

const allowedLocal = /^[a-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/i;
/** Letters of any script. `domainToASCII` alone would accept more: it reads `%41` as an A. */
const allowedDomain = /^[\p{L}\p{M}\p{N}.。．｡-]+$/u;
const allowedLabel = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const asciiOnly = /^[\x20-\x7e]*$/;

interface EmailFault {
  readonly fault: string;
  /** The same in Russian. */
  readonly faultRu: string;
}

export type NormalizedEmail = { readonly email: string } | EmailFault;

/** What is wrong with an address. Each text completes a sentence that starts with the field. */
const faults = {
  tooLong: {
    fault: `must have at most ${maxLength} characters`,
    faultRu: `должен быть не длиннее ${maxLength} символов`,
  },
  hasControls: {
    fault: 'must not contain line breaks or other control characters',
    faultRu: 'не должен содержать переводов строки и других управляющих символов',
  },
  isNotAlone: {
    fault: 'must be the address alone, without a name, quotes, brackets or comments',
    faultRu: 'должен быть только адрес, без имени, кавычек, скобок и комментариев',
  },
  isList: { fault: 'must be a single address, not a list', faultRu: 'должен быть один адрес, а не список' },
  hasSpaces: { fault: 'must not contain spaces', faultRu: 'не должен содержать пробелов' },
  hasNoAt: {
    fault: 'must contain exactly one @, as in name@example.com',
    faultRu: 'должен содержать ровно один знак @, например name@example.com',
  },
  hasNoLocal: { fault: 'must have a name before the @', faultRu: 'должен содержать имя перед знаком @' },
  localIsNotAscii: {
    fault: 'must have only Latin letters, digits and signs before the @',
    faultRu: 'перед знаком @ допустимы только латинские буквы, цифры и знаки',
  },
  localIsTooLong: {
    fault: `must have at most ${maxLocalLength} characters before the @`,
    faultRu: `перед знаком @ должно быть не более ${maxLocalLength} символов`,
  },
  localIsInvalid: {
    fault: 'must have only letters, digits, signs and single dots between them before the @',
    faultRu: 'перед знаком @ допустимы только буквы, цифры, знаки и одиночные точки между ними',
  },
  hasNoDomain: {
    fault: 'must end in the name of a mail domain, such as example.com, after the @',
    faultRu: 'после знака @ должно быть имя почтового домена, например example.com',
  },
} as const satisfies Record<string, EmailFault>;

/**
 * Returns the canonical form in which an address is stored, compared and mailed to, or what is wrong with it, as text
 * that completes a sentence that starts with the field.
 *
 * Addresses that differ only in case are one mailbox. RFC 5321 allows a server to tell them apart, but mail providers
 * do not, and treating them as two would let two users share a mailbox. Domains in other scripts become ASCII (IDNA).
 *
 * Quoted local parts, comments and address literals (`[::1]`) are valid but not used in practice, and are refused. So
 * are local parts with non-ASCII characters, because many mail servers do not accept them (RFC 6531). No accepted
 * address contains a character with a meaning in mail headers.
 */
export function normalizeEmail(text: string): NormalizedEmail {
  if (text.length > maxTextLength) return faults.tooLong;
  if (/\p{Cc}/u.test(text)) return faults.hasControls;
  const trimmed = text.trim();
  const fault = findFault(trimmed);
  if (fault !== null) return fault;

  const at = trimmed.indexOf('@');
  const local = trimmed.slice(0, at);
  const localFault = findLocalFault(local);
  if (localFault !== null) return localFault;

  const domain = normalizeDomain(trimmed.slice(at + 1));
  if (domain === null) return faults.hasNoDomain;
  const email = `${local.toLowerCase()}@${domain}`;
  return email.length > maxLength ? faults.tooLong : { email };
}

/** Common mistakes that deserve a specific message. */
function findFault(text: string): EmailFault | null {
  if (/[<>()"\\]/.test(text)) return faults.isNotAlone;
  if (/[,;]/.test(text)) return faults.isList;
  if (/\s/u.test(text)) return faults.hasSpaces;
  if (text.split('@').length !== 2) return faults.hasNoAt;
  return null;
}

function findLocalFault(local: string): EmailFault | null {
  if (local === '') return faults.hasNoLocal;
  if (!asciiOnly.test(local)) return faults.localIsNotAscii;
  if (local.length > maxLocalLength) return faults.localIsTooLong;
  if (!allowedLocal.test(local)) return faults.localIsInvalid;
  return null;
}

/** Returns null if the text is not a mail domain. A numeric last label would make it an IPv4 address. */
function normalizeDomain(text: string): string | null {
  if (!allowedDomain.test(text)) return null;
  // From Node 24 on, all-ASCII domains are not checked for broken IDNA. With an ideographic full stop, which IDNA
  // reads as a dot, every version checks them.
  const domain = domainToASCII(text.replaceAll('.', '。'));
  if (domain === 'localhost') return domain;
  const labels = domain.split('.');
  const isValid = labels.length > 1 && labels.every((label) => allowedLabel.test(label));
  return isValid && !/^\d+$/.test(labels.at(-1)!) ? domain : null;
}
