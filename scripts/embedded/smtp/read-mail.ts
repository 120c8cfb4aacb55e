import PostalMime, { type Email } from 'postal-mime';

/** Returns a mail's code, which is on a separate line of its text, or null if it has none. */
export function findMailCode(text: string | undefined): string | null {
  return /^\s*(\d{6})\s*$/m.exec(text ?? '')?.[1] ?? null;
}

export async function parseMail(bytes: Buffer): Promise<Email> {
  return await PostalMime.parse(bytes);
}
