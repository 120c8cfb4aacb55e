import { trimTyped } from './typed-text.ts';
import { normalizeMailDomain } from './mail-domain.ts';

/** RFC 5321, 4.5.3.1. A path has at most 256 characters, including the brackets around the address. */
const maxLocalLength = 64;
const maxLength = 254;
/**
 * Longer text is rejected without parsing. This leaves some space for surrounding spaces and for addresses that are
 * shorter in ASCII.
 */
const maxTextLength = 320;

const allowedLocal = /^[a-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/i;
const asciiOnly = /^[\x20-\x7e]*$/;

interface EmailProblem {
  readonly problemEn: string;
  readonly problemRu: string;
}

export type NormalizedEmail = { readonly email: string } | EmailProblem;

/** What is wrong with an address. Each text follows the name of the field in a sentence. */
const problems = {
  tooLong: {
    problemEn: `must have at most ${maxLength} characters`,
    problemRu: `должен быть не длиннее ${maxLength} символов`,
  },
  hasControls: {
    problemEn: 'must not contain line breaks or other control characters',
    problemRu: 'не должен содержать переводов строки и других управляющих символов',
  },
  isNotAlone: {
    problemEn: 'must be the address alone, without a name, quotes, brackets or comments',
    problemRu: 'должен быть только адрес, без имени, кавычек, скобок и комментариев',
  },
  isList: {
    problemEn: 'must be a single address, not a list',
    problemRu: 'должен быть один адрес, а не список',
  },
  hasSpaces: { problemEn: 'must not contain spaces', problemRu: 'не должен содержать пробелов' },
  hasNoAt: {
    problemEn: 'must contain exactly one @, as in name@example.com',
    problemRu: 'должен содержать ровно один знак @, например name@example.com',
  },
  hasNoLocal: {
    problemEn: 'must have a name before the @',
    problemRu: 'должен содержать имя перед знаком @',
  },
  localIsNotAscii: {
    problemEn: 'must have only Latin letters, digits and symbols before the @',
    problemRu: 'перед знаком @ допустимы только латинские буквы, цифры и знаки',
  },
  localIsTooLong: {
    problemEn: `must have at most ${maxLocalLength} characters before the @`,
    problemRu: `перед знаком @ должно быть не более ${maxLocalLength} символов`,
  },
  localIsInvalid: {
    problemEn: 'must have only letters, digits, symbols and single dots between them before the @',
    problemRu: 'перед знаком @ допустимы только буквы, цифры, знаки и одиночные точки между ними',
  },
  hasNoDomain: {
    problemEn: 'must end in the name of a mail domain, such as example.com, after the @',
    problemRu: 'после знака @ должно быть имя почтового домена, например example.com',
  },
} as const satisfies Record<string, EmailProblem>;

/**
 * Returns the canonical form in which an address is stored, compared and used for mail, or what is wrong with it, as
 * text that follows the name of the field in a sentence.
 *
 * Addresses that differ only in case are treated as one mailbox. RFC 5321 allows a server to distinguish them, but mail
 * providers do not, and treating them as two would let two users share a mailbox. Domains in other scripts become ASCII
 * (IDNA).
 *
 * Quoted local parts, comments and address literals (`[::1]`) are valid but not used in practice, and are rejected. So
 * are local parts with non-ASCII characters, because many mail servers do not accept them (RFC 6531). No accepted
 * address contains a character that has a meaning in mail headers.
 */
export function normalizeEmail(text: string): NormalizedEmail {
  if (text.length > maxTextLength) return problems.tooLong;
  if (/\p{Cc}/u.test(text)) return problems.hasControls;
  const trimmed = trimTyped(text);
  const problem = findProblem(trimmed);
  if (problem !== null) return problem;

  const at = trimmed.indexOf('@');
  const local = trimmed.slice(0, at);
  const localProblem = findLocalProblem(local);
  if (localProblem !== null) return localProblem;

  const domain = normalizeMailDomain(trimmed.slice(at + 1));
  if (domain === null) return problems.hasNoDomain;
  const email = `${local.toLowerCase()}@${domain}`;
  return email.length > maxLength ? problems.tooLong : { email };
}

/** Finds common mistakes that deserve a specific message. */
function findProblem(text: string): EmailProblem | null {
  if (/[<>()"\\]/.test(text)) return problems.isNotAlone;
  if (/[,;]/.test(text)) return problems.isList;
  if (/\s/u.test(text)) return problems.hasSpaces;
  if (text.split('@').length !== 2) return problems.hasNoAt;
  return null;
}

function findLocalProblem(local: string): EmailProblem | null {
  if (local === '') return problems.hasNoLocal;
  if (!asciiOnly.test(local)) return problems.localIsNotAscii;
  if (local.length > maxLocalLength) return problems.localIsTooLong;
  if (!allowedLocal.test(local)) return problems.localIsInvalid;
  return null;
}
