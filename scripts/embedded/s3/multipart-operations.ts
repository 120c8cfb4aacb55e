import { checksumAlgorithms, isChecksumAlgorithm } from './checksums.ts';
import { S3Error } from './errors.ts';
import { ownerContent, readPageSize } from './list-objects.ts';
import type { PartRecord } from './object-file.ts';
import { readMetadata, readStoredHeaders, rejectUnsupportedFeatures } from './object-headers.ts';
import type { Operation } from './operation.ts';
import { getQueryValue } from './parse-request.ts';
import type { S3Request } from './parse-request.ts';
import { readPayload } from './payload.ts';
import { maxPartNumber } from './upload-store.ts';
import type { UploadChecksum } from './upload-store.ts';
import { renderDocument, renderElement, renderText } from './xml.ts';

export const createUpload: Operation = async (context) => {
  const { request, headers, store, openPayload, nowMs } = context;
  const bucket = store.get(request.bucket);
  rejectUnsupportedFeatures(headers);
  const record = {
    key: request.key,
    initiatedAtMs: nowMs,
    headers: readStoredHeaders(headers),
    metadata: readMetadata(headers),
    checksum: readUploadChecksum(headers),
  };
  await readPayload(openPayload(0));
  const id = await bucket.uploads.create(record);
  const expiry = bucket.uploads.findExpiry(request.key, nowMs);
  return {
    status: 200,
    headers: {
      ...(record.checksum && {
        'x-amz-checksum-algorithm': record.checksum.algorithm.toUpperCase(),
        'x-amz-checksum-type': record.checksum.type,
      }),
      ...(expiry && {
        'x-amz-abort-date': new Date(expiry.expiresAtMs).toUTCString(),
        'x-amz-abort-rule-id': encodeURIComponent(expiry.ruleId),
      }),
    },
    body: renderDocument(
      'InitiateMultipartUploadResult',
      renderText('Bucket', request.bucket),
      renderText('Key', request.key),
      renderText('UploadId', id),
    ),
  };
};

export const uploadPart: Operation = async (context) => {
  const { request, headers, store, openPayload, maxObjectBytes, nowMs } = context;
  const { uploads } = store.get(request.bucket);
  rejectUnsupportedFeatures(headers);
  const partNumber = readPartNumber(getQueryValue(request, 'partNumber') ?? '');
  const id = readUploadId(request);
  const { checksum } = await uploads.read(request.key, id);
  const payload = openPayload(maxObjectBytes);
  if (payload.length === undefined) throw new S3Error('MissingContentLength');
  const part = await uploads.putPart(request.key, id, partNumber, payload.chunks, (size) => {
    const sent = payload.checksum();
    // Without an algorithm of the upload, a part's checksum is only verified.
    if (checksum !== undefined && sent?.algorithm !== checksum.algorithm) {
      throw new S3Error('InvalidRequest', {
        message: `Checksum Type mismatch occurred, expected checksum Type: ${checksum.algorithm}, actual checksum Type: ${sent?.algorithm ?? 'null'}`,
      });
    }
    return { size, etag: payload.md5(), lastModifiedMs: nowMs, checksum: sent };
  });
  return {
    status: 200,
    headers: {
      etag: `"${part.etag}"`,
      ...(part.checksum && { [`x-amz-checksum-${part.checksum.algorithm}`]: part.checksum.value }),
    },
  };
};

export const listParts: Operation = async ({ request, store }) => {
  const { uploads } = store.get(request.bucket);
  const id = readUploadId(request);
  const maxParts = readPageSize(request, 'max-parts');
  const marker = getQueryValue(request, 'part-number-marker') ?? '';
  if (!/^\d{0,9}$/.test(marker)) {
    throw new S3Error('InvalidArgument', {
      message: 'Argument part-number-marker must be an integer between 0 and 2147483647',
    });
  }
  const { checksum, initiatedAtMs } = await uploads.read(request.key, id);
  const { parts, hasMore } = await uploads.listParts(request.key, id, Number(marker), maxParts);
  const expiry = uploads.findExpiry(request.key, initiatedAtMs);
  return {
    status: 200,
    headers: expiry && {
      'x-amz-abort-date': new Date(expiry.expiresAtMs).toUTCString(),
      'x-amz-abort-rule-id': encodeURIComponent(expiry.ruleId),
    },
    body: renderDocument(
      'ListPartsResult',
      renderText('Bucket', request.bucket),
      renderText('Key', request.key),
      renderText('UploadId', id),
      renderElement('Initiator', ...ownerContent),
      renderElement('Owner', ...ownerContent),
      renderText('StorageClass', 'STANDARD'),
      renderText('PartNumberMarker', Number(marker)),
      hasMore ? renderText('NextPartNumberMarker', parts.at(-1)?.partNumber ?? 0) : '',
      renderText('MaxParts', maxParts),
      renderText('IsTruncated', hasMore),
      renderUploadChecksum(checksum),
      ...parts.map((part) =>
        renderElement(
          'Part',
          renderText('PartNumber', part.partNumber),
          renderText('LastModified', new Date(part.lastModifiedMs).toISOString()),
          renderText('ETag', `"${part.etag}"`),
          renderText('Size', part.size),
          renderPartChecksum(part),
        ),
      ),
    ),
  };
};

export const abortUpload: Operation = async ({ request, store }) => {
  await store.get(request.bucket).uploads.abort(request.key, readUploadId(request));
  return { status: 204 };
};

/** The id is only ever looked up, so it may be any text. */
export function readUploadId(request: S3Request): string {
  return getQueryValue(request, 'uploadId') ?? '';
}

/** @throws S3Error `InvalidArgument` */
export function readPartNumber(text: string): number {
  const partNumber = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (partNumber < 1 || partNumber > maxPartNumber) {
    throw new S3Error('InvalidArgument', {
      message: `Part number must be an integer between 1 and ${String(maxPartNumber)}, inclusive`,
      details: { ArgumentName: 'partNumber', ArgumentValue: text },
    });
  }
  return partNumber;
}

function renderUploadChecksum(checksum: UploadChecksum | undefined): string {
  if (checksum === undefined) return '';
  return (
    renderText('ChecksumAlgorithm', checksum.algorithm.toUpperCase()) +
    renderText('ChecksumType', checksum.type)
  );
}

function renderPartChecksum({ checksum }: PartRecord): string {
  return checksum === undefined
    ? ''
    : renderText(`Checksum${checksum.algorithm.toUpperCase()}`, checksum.value);
}

function readUploadChecksum(headers: ReadonlyMap<string, string>): UploadChecksum | undefined {
  const name = headers.get('x-amz-checksum-algorithm');
  const type = headers.get('x-amz-checksum-type');
  if (name === undefined) {
    if (type === undefined) return undefined;
    throw new S3Error('InvalidRequest', {
      message: 'The x-amz-checksum-type header can only be used with the x-amz-checksum-algorithm header.',
    });
  }
  const algorithm = name.toLowerCase();
  if (!isChecksumAlgorithm(algorithm)) {
    throw new S3Error('NotImplemented', {
      message: `The checksum algorithm ${name} is not implemented here; use one of ${checksumAlgorithms.join(', ')}.`,
    });
  }
  const isSha = algorithm === 'sha1' || algorithm === 'sha256';
  const chosen = type ?? (algorithm === 'crc64nvme' ? 'FULL_OBJECT' : 'COMPOSITE');
  const isPossible =
    (chosen === 'FULL_OBJECT' && !isSha) || (chosen === 'COMPOSITE' && algorithm !== 'crc64nvme');
  if (!isPossible) {
    throw new S3Error('InvalidRequest', {
      message: `The ${chosen} checksum type cannot be used with the ${algorithm} checksum algorithm.`,
    });
  }
  return { algorithm, type: chosen };
}
