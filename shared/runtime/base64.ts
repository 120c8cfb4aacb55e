import { takeInTurns } from '../fairness/work-turns.ts';
import { countBase64Bytes } from '../contract/data-uri.ts';

/** Of base64: well under a millisecond to decode, and a whole number of its groups of four. */
const pieceChars = 256 * 1024;
/** What a piece stands for. */
const pieceBytes = (pieceChars / 4) * 3;

/** The bytes of base64, decoded in turns of the account; null where it is not canonical. */
export async function decodeBase64(text: string, accountId: string): Promise<Buffer | null> {
  if (text.length % 4 !== 0) return null;
  const bytes = Buffer.allocUnsafe(countBase64Bytes(text));
  let isCanonical = true;
  await takeInTurns(cut(text.length, pieceChars), accountId, (from) => {
    if (!isCanonical) return;
    const piece = text.slice(from, from + pieceChars);
    const start = (from / 4) * 3;
    const end = Math.min(bytes.length, start + pieceBytes);
    // Node decodes whatever there is; what encodes to the same text again was all of it base64.
    const isWhole = bytes.write(piece, start, 'base64') === end - start;
    isCanonical = isWhole && bytes.toString('base64', start, end) === piece;
  });
  return isCanonical ? bytes : null;
}

/** The base64 of bytes, written in turns of the account. */
export async function encodeBase64(bytes: Buffer, accountId: string): Promise<string> {
  let text = '';
  await takeInTurns(cut(bytes.length, pieceBytes), accountId, (from) => {
    text += bytes.toString('base64', from, from + pieceBytes);
  });
  return text;
}

function* cut(length: number, step: number): Generator<number> {
  for (let from = 0; from < length; from += step) yield from;
}
