import { processInTurns } from '../../shared/fairness/work-turns.ts';
import { countBase64Bytes } from '../../shared/contract/data-uri.ts';

/**
 * Base64 characters per piece. A piece decodes in well under a millisecond and is a whole number of 4-character
 * groups.
 */
const pieceChars = 256 * 1024;
/** Decoded bytes per full piece. */
const pieceBytes = (pieceChars / 4) * 3;

/** Decodes base64 in the account's work turns. Returns null if the text is not canonical base64. */
export async function decodeBase64(text: string, accountId: string): Promise<Buffer | null> {
  if (text.length % 4 !== 0) return null;
  const bytes = Buffer.allocUnsafe(countBase64Bytes(text));
  let isCanonical = true;
  await processInTurns(cut(text.length, pieceChars), accountId, (from) => {
    if (!isCanonical) return;
    const piece = text.slice(from, from + pieceChars);
    const start = (from / 4) * 3;
    const end = Math.min(bytes.length, start + pieceBytes);
    // Node skips invalid characters when decoding. Only canonical base64 encodes back to the same text.
    const isWhole = bytes.write(piece, start, 'base64') === end - start;
    isCanonical = isWhole && bytes.toString('base64', start, end) === piece;
  });
  return isCanonical ? bytes : null;
}

/** Encodes bytes as base64 in the account's work turns. */
export async function encodeBase64(bytes: Buffer, accountId: string): Promise<string> {
  let text = '';
  await processInTurns(cut(bytes.length, pieceBytes), accountId, (from) => {
    text += bytes.toString('base64', from, from + pieceBytes);
  });
  return text;
}

function* cut(length: number, step: number): Generator<number> {
  for (let from = 0; from < length; from += step) yield from;
}
