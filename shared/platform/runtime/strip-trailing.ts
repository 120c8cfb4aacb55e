/** Removes every repetition of a character from the end of a text. Linear, unlike a search for `/+$`. */
export function stripTrailing(text: string, character: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === character) end -= 1;
  return text.slice(0, end);
}
