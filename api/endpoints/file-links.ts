import { fileNameOf } from '../../shared/storage/file-name.ts';
import type { Services } from '../services.ts';

/** Where a generated file is found: at this server, or at the bucket or CDN that the operator names. */
export function createFileLinks({ config, publicUrl }: Services): (objectKey: string) => string {
  const { publicUrl: bucketUrl } = config.s3;
  return (key) => (bucketUrl === null ? `${publicUrl}/files/${fileNameOf(key)}` : `${bucketUrl}/${key}`);
}
