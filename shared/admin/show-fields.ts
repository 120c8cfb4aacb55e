import { maskSecrets } from '../contract/mask-secrets.ts';
import { shorten } from '../platform/runtime/shorten.ts';

/** Of all texts together. */
const maxCharacters = 8_000;
/** Names and values. No entry has as many. */
const maxTexts = 200;

/**
 * Shows the fields of an entry whose content may be anything: names and values, alternating. Secrets are masked, and the
 * longest are cut so that all together have at most 8 000 characters, without the marks of the cuts. Pure.
 */
export function showFields(fields: readonly string[]): string[] {
  const masked = fields.slice(0, maxTexts).map(maskSecrets);
  const longest = findLongest(masked.map(({ length }) => length));
  return masked.map((text) => shorten(text, longest));
}

/** Returns the length to which texts are cut. What short ones leave is shared among the others. */
function findLongest(lengths: readonly number[]): number {
  let left = maxCharacters;
  for (const [i, length] of lengths.toSorted((a, b) => a - b).entries()) {
    const share = Math.floor(left / (lengths.length - i));
    if (length > share) return share;
    left -= length;
  }
  return maxCharacters;
}
