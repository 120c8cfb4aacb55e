import PostalMime, { type Email } from 'postal-mime';

/** The code of a mail, which its text has on a line of its own; null where it has none. */
export function findMailCode(text: string | undefined): string | null {
  return /^\s*(\d{6})\s*$/m.exec(text ?? '')?.[1] ?? null;
}

export async function parseMail(bytes: Buffer): Promise<Email> {
  return await PostalMime.parse(bytes);
}
