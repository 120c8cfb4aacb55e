/** Tokens are words here, separated by white space. */
export function countWords(text: string): number {
  let words = 0;
  let isInWord = false;
  for (let position = 0; position < text.length; position += 1) {
    const isSpace = text.charCodeAt(position) <= 32;
    if (!isSpace && !isInWord) {
      words += 1;
    }
    isInWord = !isSpace;
  }
  return words;
}
