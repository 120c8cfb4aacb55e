import { decodeBase64 } from '../../shared/encoding/base64.ts';
import { type GeneratedImage, UpstreamError } from './upstream.ts';

/** Decodes an image in a vendor's response. Some vendors break base64 into lines, which Node skips. */
export async function decodePicture(base64: string, accountId: string): Promise<Buffer> {
  return (await decodeBase64(base64, accountId)) ?? Buffer.from(base64, 'base64');
}

/** Determines the image type from the first bytes. The vendor's claim does not count. */
export function sniffImageType(bytes: Buffer): GeneratedImage['contentType'] {
  if (bytes.subarray(0, 8).equals(Buffer.from('89504e470d0a1a0a', 'hex'))) {
    return 'image/png';
  }
  if (bytes[0] === 0xff && bytes[1] === 0xd8 && bytes[2] === 0xff) {
    return 'image/jpeg';
  }
  if (bytes.toString('latin1', 0, 4) === 'RIFF' && bytes.toString('latin1', 8, 12) === 'WEBP') {
    return 'image/webp';
  }
  throw new UpstreamError('unavailable', 'the upstream sent an image that is neither PNG, JPEG nor WebP');
}
