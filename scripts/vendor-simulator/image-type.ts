/** Detects an image's type from its first bytes. Null if vendors do not accept it. */
export function findImageType(bytes: Buffer): string | null {
  const begins = (hex: string): boolean => bytes.toString('hex', 0, hex.length / 2) === hex;
  if (begins('89504e470d0a1a0a')) {
    return 'image/png';
  }
  if (begins('ffd8ff')) {
    return 'image/jpeg';
  }
  if (begins('474946383761') || begins('474946383961')) {
    return 'image/gif';
  }
  return begins('52494646') && bytes.toString('latin1', 8, 12) === 'WEBP' ? 'image/webp' : null;
}

/** Decodes base64. Returns null if the text is not base64. */
export function readBase64(text: string): Buffer | null {
  return text !== '' && /^[A-Za-z0-9+/_-]*={0,2}$/.test(text) && text.replace(/=+$/, '').length % 4 !== 1
    ? Buffer.from(text, 'base64')
    : null;
}
