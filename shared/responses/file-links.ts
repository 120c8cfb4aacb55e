import { fileNameOf } from '../platform/storage/file-name.ts';

/**
 * Creates a function that returns the public URL of a generated file: on the gateway, or on the operator's bucket or
 * CDN.
 * @param publicUrl of the gateway
 * @param bucketUrl the public URL of the bucket; null if the gateway serves its files
 */
export const createFileLinks =
  (publicUrl: string, bucketUrl: string | null) =>
  (objectKey: string): string =>
    bucketUrl === null ? `${publicUrl}/files/${fileNameOf(objectKey)}` : `${bucketUrl}/${objectKey}`;
