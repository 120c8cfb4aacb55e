import { S3Error } from './errors.ts';
import {
  checkWriteCondition,
  readMetadata,
  readStoredHeaders,
  rejectUnsupportedFeatures,
  renderChecksum,
  renderExpiry,
} from './object-headers.ts';
import type { Operation, OperationContext, S3Response } from './operation.ts';
import { isNotModified, readRange, renderObjectHeaders } from './read-object.ts';

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
    { checkCondition: (key) => checkWriteCondition(headers, bucket, key) },
  );
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
