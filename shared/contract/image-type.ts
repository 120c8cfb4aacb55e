/** Image formats that the gateway recognises, from callers and vendors. */
export type ImageType = 'image/png' | 'image/jpeg' | 'image/webp' | 'image/gif';

/** How many of a file's first bytes are needed to detect its format. */
export const sniffedImageBytes = 12;

/** Detects the format from a file's first bytes. Returns null for any other format. */
export function sniffImageType(bytes: Buffer): ImageType | null {
  const start = bytes.toString('latin1', 0, sniffedImageBytes);
  if (start.startsWith('\x89PNG\r\n\x1a\n')) return 'image/png';
  if (start.startsWith('\xff\xd8\xff')) return 'image/jpeg';
  if (start.startsWith('RIFF') && start.startsWith('WEBP', 8)) return 'image/webp';
  if (start.startsWith('GIF87a') || start.startsWith('GIF89a')) return 'image/gif';
  return null;
}
