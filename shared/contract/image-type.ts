/** What the gateway reads as an image of a caller's or a vendor's. */
export type ImageType = 'image/png' | 'image/jpeg' | 'image/webp' | 'image/gif';

/** As many bytes as tell the types apart. */
export const sniffedImageBytes = 12;

/** What the first bytes of a file say that it is; null for anything but these formats. */
export function sniffImageType(bytes: Buffer): ImageType | null {
  const start = bytes.toString('latin1', 0, sniffedImageBytes);
  if (start.startsWith('\x89PNG\r\n\x1a\n')) return 'image/png';
  if (start.startsWith('\xff\xd8\xff')) return 'image/jpeg';
  if (start.startsWith('RIFF') && start.startsWith('WEBP', 8)) return 'image/webp';
  if (start.startsWith('GIF87a') || start.startsWith('GIF89a')) return 'image/gif';
  return null;
}
