import { hashSecret } from '../../shared/accounts/credentials.ts';

/** Secrets by what they are to whoever reads of a failed test: none of them is ever shown. */
export type Secrets = ReadonlyMap<string, string>;

/** What six digits may stand in without being meant: a longer number, the fraction of one, a word. */
const asWhole = (code: string): RegExp => new RegExp(`(?<![0-9a-z.])${code}(?![0-9a-z])`, 'i');

const isShortCode = (secret: string): boolean => /^\d{6}$/.test(secret);

/** A text in base64 as it stands within a longer text, of which it may begin at any of three places. */
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
  // A hash of six digits tells them: all million can be tried.
  yield hashSecret(secret);
  yield Buffer.from(hashSecret(secret), 'base64url').toString('hex');
}

/** @returns names of the secrets that a text holds: in clear, in base64 or hexadecimal; mailed codes as plain hashes too */
export function findSecrets(text: string, secrets: Secrets): string[] {
  return [...secrets].flatMap(([name, secret]) => {
    const isInClear = isShortCode(secret) ? asWhole(secret).test(text) : text.includes(secret);
    const found = [...new Set(listForms(secret))].some((form) => text.includes(form));
    return [...(isInClear ? [`${name} in clear`] : []), ...(found ? [`${name} in another form`] : [])];
  });
}
