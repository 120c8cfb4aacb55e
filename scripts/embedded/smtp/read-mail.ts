import PostalMime, { type Email } from 'postal-mime';

/** Returns a mail's code, which is on a separate line of its text, or null if it has none. */
export function findMailCode(text: string | undefined): string | null {
  const lines = (text ?? '').split('\n').map((line) => line.trim());
  return lines.find((line) => /^\d{6}$/.test(line)) ?? null;
}

export async function parseMail(bytes: Buffer): Promise<Email> {
  return await PostalMime.parse(bytes);
}
