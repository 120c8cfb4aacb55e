/** Quotes any text as one word of sh. */
export function quoteShell(text: string): string {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text;
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
