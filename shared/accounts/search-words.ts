/** Longer words are cut, and further ones are ignored. */
const maxWordLength = 64;
const maxWords = 200;

const separators = /[^\p{L}\p{N}]+/u;

const normalize = (text: string): string => text.normalize('NFKC').toLowerCase();

/** The fields of an account by whose words operators find it. */
export interface SearchedFields {
  readonly name?: string | null | undefined;
  readonly email?: string | null | undefined;
  readonly note?: string | null | undefined;
}

/**
 * Lists the words of an account's texts, in lower case. A text such as `anna@example.com` is a word, and so are its
 * parts.
 */
export function listSearchWords({ name, email, note }: SearchedFields): ReadonlySet<string> {
  const words = new Set<string>();
  for (const text of [name, email, note])
    for (const whole of normalize(text ?? '').split(/\s+/))
      for (const word of [whole, ...whole.split(separators)]) {
        if (words.size === maxWords) return words;
        if (word !== '') words.add(word.slice(0, maxWordLength));
      }
  return words;
}

/** Splits what is searched for into the beginnings of words, longest first. */
export const readSearch = (text: string): readonly string[] =>
  normalize(text)
    .split(/\s+/)
    .filter((term) => term !== '')
    .map((term) => term.slice(0, maxWordLength))
    .toSorted((one, other) => other.length - one.length);
