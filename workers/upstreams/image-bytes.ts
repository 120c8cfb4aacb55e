import { sniffImageType } from '../../shared/contract/image-type.ts';
import { decodeBase64 } from './base64.ts';
import { type GeneratedImage, UpstreamError } from './upstream.ts';

/** Decodes an image in a vendor's response. Some vendors insert line breaks into base64, which Node skips. */
export async function decodeImage(base64: string, accountId: string): Promise<Buffer> {
  return (await decodeBase64(base64, accountId)) ?? Buffer.from(base64, 'base64');
}

/** Determines the image type from the first bytes, regardless of the type that the vendor claims. */
export function readImageType(bytes: Buffer): GeneratedImage['contentType'] {
  const type = sniffImageType(bytes);
  if (type !== null && type !== 'image/gif') return type;
  throw new UpstreamError('unavailable', 'the upstream sent an image that is neither PNG, JPEG nor WebP');
}
