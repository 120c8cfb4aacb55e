import { hashSecret } from '../../shared/accounts/credentials.ts';

/** Secrets keyed by a description, which is shown when a test fails. The secret itself is never shown. */
export type Secrets = ReadonlyMap<string, string>;

/** Matches six digits only as a whole, not inside a longer number, a fraction or a word. */
const toWholeCodePattern = (code: string): RegExp => new RegExp(`(?<![0-9a-z.])${code}(?![0-9a-z])`, 'i');

const isShortCode = (secret: string): boolean => /^\d{6}$/.test(secret);

/** The forms that a text takes inside the base64 of a longer text, one for each offset modulo three. */
function* listBase64(secret: string): Generator<string> {
  for (const shift of [0, 1, 2]) {
    const bytes = Buffer.concat([Buffer.alloc(shift), Buffer.from(secret)]);
    const whole = bytes
      .toString('base64')
      .slice(Math.ceil((shift * 8) / 6), Math.floor((bytes.length * 8) / 6));
    yield whole;
    yield whole.replaceAll('+', '-').replaceAll('/', '_');
  }
}

function* listForms(secret: string): Generator<string> {
  yield* listBase64(secret);
  const hex = Buffer.from(secret).toString('hex');
  yield hex;
  yield hex.toUpperCase();
  if (!isShortCode(secret)) return;
  // A plain hash of a six-digit code reveals the code, because all million codes can be tried.
  yield hashSecret(secret);
  yield Buffer.from(hashSecret(secret), 'base64url').toString('hex');
}

/**
 * @returns the names of secrets found in the text: in clear, in base64 or hexadecimal; mailed codes also as plain
 * hashes
 */
export function findSecrets(text: string, secrets: Secrets): string[] {
  return [...secrets].flatMap(([name, secret]) => {
    const isInClear = isShortCode(secret) ? toWholeCodePattern(secret).test(text) : text.includes(secret);
    const isEncoded = [...new Set(listForms(secret))].some((form) => text.includes(form));
    return [...(isInClear ? [`${name} in clear`] : []), ...(isEncoded ? [`${name} in another form`] : [])];
  });
}
