import type { Bucket } from './bucket.ts';
import { S3Error } from './errors.ts';
import { renderExpiration } from './lifecycle.ts';
import type { ObjectRecord } from './object-file.ts';
import type { NamedValue } from './parse-request.ts';
import { checkHeaderValue, createPreconditionError, matchesEtag, overridableHeaders } from './read-object.ts';

const maxMetadataBytes = 2048;
const metadataPrefix = 'x-amz-meta-';

// Headers whose effect is not implemented here. Requests with them are rejected.
const unsupportedHeaders =
  /^x-amz-(?:copy-source|server-side-encryption|tagging|object-lock|grant|website-redirect|write-offset)/;

/** Rejects requests that ask for something that would silently not be done. */
export function rejectUnsupportedFeatures(headers: ReadonlyMap<string, string>): void {
  for (const [name, value] of headers) {
    const isUnsupported =
      unsupportedHeaders.test(name) ||
      (name === 'x-amz-acl' && value !== 'private') ||
      (name === 'x-amz-storage-class' && value !== 'STANDARD');
    if (isUnsupported) throw new S3Error('NotImplemented', { details: { Header: name } });
  }
}

/** Returns the headers that are stored with an object. */
export function readStoredHeaders(headers: ReadonlyMap<string, string>): NamedValue[] {
  const stored: NamedValue[] = [];
  for (const name of overridableHeaders) {
    let value = headers.get(name);
    if (name === 'content-encoding') {
      // aws-chunked describes the transfer of the body, not its content.
      const codings = value?.split(',').map((coding) => coding.trim());
      value = codings?.filter((coding) => coding.toLowerCase() !== 'aws-chunked').join(',');
    }
    if (value !== undefined && value !== '') stored.push([name, checkHeaderValue(value)]);
  }
  return stored;
}

/** Returns the user metadata that is stored with an object. */
export function readMetadata(headers: ReadonlyMap<string, string>): NamedValue[] {
  const metadata: NamedValue[] = [];
  let bytes = 0;
  for (const [header, value] of headers) {
    if (!header.startsWith(metadataPrefix)) continue;
    const name = header.slice(metadataPrefix.length);
    // In presigned requests, the names come from the query, which may contain any text.
    if (!/^[!#$%&'*+.^_`|~\w-]+$/.test(name)) throw new S3Error('InvalidArgument');
    bytes += name.length + value.length;
    metadata.push([name, checkHeaderValue(value)]);
  }
  if (bytes > maxMetadataBytes) {
    throw new S3Error('MetadataTooLarge', {
      details: { Size: String(bytes), MaxSizeAllowed: String(maxMetadataBytes) },
    });
  }
  return metadata;
}

/**
 * Evaluates a conditional write.
 * @throws S3Error `PreconditionFailed` or `NoSuchKey`
 */
export function checkWriteCondition(headers: ReadonlyMap<string, string>, bucket: Bucket, key: string): void {
  const existing = bucket.find(key);
  const ifNoneMatch = headers.get('if-none-match');
  const ifMatch = headers.get('if-match');
  if (ifNoneMatch !== undefined && existing !== undefined && matchesEtag(ifNoneMatch, existing.etag)) {
    throw createPreconditionError('If-None-Match');
  }
  if (ifMatch === undefined) return;
  if (existing === undefined) throw new S3Error('NoSuchKey', { details: { Key: key } });
  if (!matchesEtag(ifMatch, existing.etag)) throw createPreconditionError('If-Match');
}

export function renderExpiry(
  bucket: Bucket,
  record: Pick<ObjectRecord, 'key' | 'lastModifiedMs'>,
): Record<string, string> {
  const expiry = bucket.findExpiry(record.key, record.lastModifiedMs);
  return expiry === undefined ? {} : { 'x-amz-expiration': renderExpiration(expiry) };
}

export function renderChecksum(checksum: ObjectRecord['checksum']): Record<string, string> {
  if (checksum === undefined) return {};
  return {
    [`x-amz-checksum-${checksum.algorithm}`]: checksum.value,
    'x-amz-checksum-type': checksum.type ?? 'FULL_OBJECT',
  };
}
