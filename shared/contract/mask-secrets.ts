/** An API key or a token of the admin API, also one that was cut or mistyped. */
const keys = /(?<![A-Za-z0-9_-])(mga?-)[A-Za-z0-9_-]{12,}/gi;
/** A refill code as it was issued, also with a mistyped character. */
const issuedCodes = /(?<![A-Za-z0-9_-])[0-9A-Z]{4}(?:-[0-9A-Z]{4}){4}(?![A-Za-z0-9_-])/gi;
/** A refill code as people type it: in Latin letters or Cyrillic ones that look the same, with any dashes, spaces, or neither. */
const typedCodes =
  /(?<![\p{L}\p{N}_-])[2-9A-HJKMNP-ZАВЕКМНРСТУХ]{4}([\s\p{Pd}\u2212]{0,3})[2-9A-HJKMNP-ZАВЕКМНРСТУХ]{4}(?:\1[2-9A-HJKMNP-ZАВЕКМНРСТУХ]{4}){3}(?![\p{L}\p{N}_-])/giu;

/** A key or a token whose first characters are there. */
const begunKeys = /(?<![\p{L}\p{N}_-])mga?-[A-Za-z0-9_-]{6,}/iu;
/** Four groups of a code, whatever follows. */
const mostOfCode = beginningOfCode(4);
/** What the first characters of a key or a token are typed as. */
const keyBeginning = /(?<![\p{L}\p{N}_-])mga?-/iu;
/** Two groups of a code, and the separator after them. */
const codeBeginning = beginningOfCode(2, true);

/** Groups in the middle of a longer word, such as an id, begin no code. */
function beginningOfCode(groups: number, isContinued = false): RegExp {
  const group = '[2-9A-HJKMNP-ZАВЕКМНРСТУХ]{4}';
  const separator = '[\\s\\p{Pd}\\u2212]{1,3}';
  const all = Array.from({ length: groups }, () => group).join(separator);
  return new RegExp(`(?<![\\p{L}\\p{N}_-])${all}${isContinued ? separator : '(?![\\p{L}\\p{N}])'}`, 'iu');
}

/** Words of four letters between spaces are more often words. Nearly every code has a digit in the first groups. */
const canBeginCode = (text: string, pattern: RegExp): boolean =>
  /[\p{N}\p{Pd}\u2212]/u.test(pattern.exec(text)?.[0] ?? '');

/** Hides keys, tokens and codes in a text that is logged or returned, such as a path into which one was pasted. */
export const maskSecrets = (text: string): string =>
  text.replaceAll(issuedCodes, '…').replaceAll(keys, '$1…');

/** Trims a text that somebody has written, and hides what was pasted into it, also codes as people type them. */
export const cleanText = (text: string): string => maskSecrets(text.trim()).replaceAll(typedCodes, '…');

/** Lists what may be API keys, tokens of the admin API or refill codes in a text, keys first. */
export const listSecrets = (text: string): string[] =>
  [keys, issuedCodes, typedCodes].flatMap((pattern) => text.match(pattern) ?? []);

/** Whether a text that somebody has typed or pasted has a key, a token or a code anywhere in it. */
export const hasSecret = (text: string): boolean => listSecrets(text).length > 0;

/** Whether a text has a key, a token or a code, or so much of one that it should be in no address. */
export const hasPartOfSecret = (text: string): boolean =>
  hasSecret(text) || begunKeys.test(text) || canBeginCode(text, mostOfCode);

/** Whether what is typed so far may become a key, a token or a code. May be so of a name, too: `mg-chat`. */
export const maybeBeginsSecret = (text: string): boolean =>
  hasPartOfSecret(text) || keyBeginning.test(text) || canBeginCode(text, codeBeginning);
