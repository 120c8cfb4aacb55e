import type { Bucket } from './bucket.ts';
import { S3Error } from './errors.ts';
import { renderExpiration } from './lifecycle.ts';
import type { ObjectRecord } from './object-file.ts';
import type { Operation, OperationContext, S3Response } from './operation.ts';
import type { NamedValue } from './parse-request.ts';
import type { PayloadChecksum } from './payload.ts';
import {
  checkHeaderValue,
  createPreconditionError,
  isNotModified,
  matchesEtag,
  overridableHeaders,
  readRange,
  renderObjectHeaders,
} from './read-object.ts';

const maxMetadataBytes = 2048;
const metadataPrefix = 'x-amz-meta-';

// Headers whose effect is not implemented here. Requests with them are rejected.
const unsupportedHeaders =
  /^x-amz-(?:copy-source|server-side-encryption|tagging|object-lock|grant|website-redirect|write-offset)/;

export const putObject: Operation = async (context) => {
  const { request, headers, store, openPayload, maxObjectBytes } = context;
  const bucket = store.get(request.bucket);
  rejectUnsupportedFeatures(headers);
  const storedFields = { headers: readStoredHeaders(headers), metadata: readMetadata(headers) };
  const payload = openPayload(maxObjectBytes);
  if (payload.length === undefined) throw new S3Error('MissingContentLength');
  const record = await bucket.put(
    payload.chunks,
    (size) => ({
      key: request.key,
      size,
      etag: payload.md5(),
      lastModifiedMs: context.nowMs,
      ...storedFields,
      checksum: payload.checksum(),
    }),
    (key) => checkWriteCondition(headers, bucket, key),
  );
  if (record === undefined) throw new S3Error('NoSuchBucket', { details: { BucketName: request.bucket } });
  return {
    status: 200,
    headers: {
      etag: `"${record.etag}"`,
      ...renderChecksum(record.checksum),
      ...renderExpiry(bucket, record),
    },
  };
};

export const getObject: Operation = (context) => readObject(context, true);

export const headObject: Operation = (context) => readObject(context, false);

export const deleteObject: Operation = async ({ request, headers, store }) => {
  // Ignoring a condition would delete objects that should not be deleted.
  if (headers.has('if-match')) throw new S3Error('NotImplemented', { details: { Header: 'if-match' } });
  await store.get(request.bucket).delete(request.key);
  return { status: 204 };
};

async function readObject(context: OperationContext, withBody: boolean): Promise<S3Response> {
  const { request, headers, store } = context;
  rejectUnsupportedFeatures(headers);
  const bucket = store.get(request.bucket);
  const found = await bucket.open(request.key);
  if (found === undefined) throw new S3Error('NoSuchKey', { details: { Key: request.key } });
  const { record, handle } = found;
  let isHandleTransferred = false;
  try {
    const objectHeaders = { ...renderObjectHeaders(request, record), ...renderExpiry(bucket, record) };
    if (isNotModified(headers, record)) return { status: 304, headers: objectHeaders };
    const range = readRange(headers, record);
    const length = range === undefined ? record.size : range.end - range.start + 1;
    const response: S3Response = {
      status: range === undefined ? 200 : 206,
      headers: {
        ...objectHeaders,
        'content-length': String(length),
        ...(range && {
          'content-range': `bytes ${String(range.start)}-${String(range.end)}/${String(record.size)}`,
        }),
        // The checksum covers the whole object. If it were sent with a range, clients would check the range against it.
        ...(range === undefined && headers.get('x-amz-checksum-mode')?.toUpperCase() === 'ENABLED'
          ? renderChecksum(record.checksum)
          : {}),
      },
    };
    if (!withBody || length === 0) return response;
    const start = range?.start ?? 0;
    const stream = handle.createReadStream({ start, end: start + length - 1, highWaterMark: 256 * 1024 });
    isHandleTransferred = true;
    return { ...response, body: { stream } };
  } finally {
    if (!isHandleTransferred) await handle.close();
  }
}

function rejectUnsupportedFeatures(headers: ReadonlyMap<string, string>): void {
  for (const [name, value] of headers) {
    const isUnsupported =
      unsupportedHeaders.test(name) ||
      (name === 'x-amz-acl' && value !== 'private') ||
      (name === 'x-amz-storage-class' && value !== 'STANDARD');
    if (isUnsupported) throw new S3Error('NotImplemented', { details: { Header: name } });
  }
}

function readStoredHeaders(headers: ReadonlyMap<string, string>): NamedValue[] {
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

function readMetadata(headers: ReadonlyMap<string, string>): NamedValue[] {
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

function checkWriteCondition(headers: ReadonlyMap<string, string>, bucket: Bucket, key: string): void {
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

function renderExpiry(bucket: Bucket, record: ObjectRecord): Record<string, string> {
  const expiry = bucket.findExpiry(record.key, record.lastModifiedMs);
  return expiry === undefined ? {} : { 'x-amz-expiration': renderExpiration(expiry) };
}

function renderChecksum(checksum: PayloadChecksum | undefined): Record<string, string> {
  if (checksum === undefined) return {};
  return {
    [`x-amz-checksum-${checksum.algorithm}`]: checksum.value,
    'x-amz-checksum-type': 'FULL_OBJECT',
  };
}
