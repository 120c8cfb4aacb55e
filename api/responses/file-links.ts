import { fileNameOf } from '../../shared/platform/storage/file-name.ts';
import type { Services } from '../services.ts';

/**
 * Creates a function that returns the public URL of a generated file: on this server, or on the operator's bucket or
 * CDN.
 */
export function createFileLinks({ config, publicUrl }: Services): (objectKey: string) => string {
  const { publicUrl: bucketUrl } = config.s3;
  return (key) => (bucketUrl === null ? `${publicUrl}/files/${fileNameOf(key)}` : `${bucketUrl}/${key}`);
}
