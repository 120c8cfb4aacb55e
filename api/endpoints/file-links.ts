import type { Services } from '../services.ts';

/** Where a generated file is found: at this server, or at the bucket or CDN that the operator names. */
export function createFileLinks({ config, publicUrl }: Services): (objectKey: string) => string {
  const base = config.s3.publicUrl ?? `${publicUrl}/files`;
  return (key) => `${base}/${key}`;
}
