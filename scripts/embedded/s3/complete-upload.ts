import { createHash } from 'node:crypto';
import type { Bucket } from './bucket.ts';
import { checksumAlgorithms, createChecksum } from './checksums.ts';
import { S3Error } from './errors.ts';
import { readPartNumber, readUploadId } from './multipart-operations.ts';
import type { ObjectRecord, PartRecord } from './object-file.ts';
import { checkWriteCondition, rejectUnsupportedFeatures, renderExpiry } from './object-headers.ts';
import type { Operation, OperationContext } from './operation.ts';
import { readPayload } from './payload.ts';
import type { UploadChecksum, UploadRecord } from './upload-store.ts';
import { findChild, parseXml, renderRoot, renderText } from './xml.ts';
import type { XmlElement } from './xml.ts';

/** All parts but the last must have this size. */
const minPartBytes = 5 * 1024 * 1024;
const maxMultipartBytes = 5 * 1024 ** 4;
// Ten thousand parts with number, entity tag, checksum and white space.
const maxListBytes = 8 * 1024 * 1024;
const copyBytes = 1024 * 1024;

/** A part as the client lists it. */
interface ListedPart {
  partNumber: number;
  /** MD5 in hexadecimal, without quotes. */
  etag: string;
  checksums: ReadonlyMap<string, string>;
}

export const completeUpload: Operation = async (context) => {
  const { request, headers, store, openPayload } = context;
  const bucket = store.get(request.bucket);
  rejectUnsupportedFeatures(headers);
  const id = readUploadId(request);
  // The other checksums in the headers are those of the object, not of this document.
  const bodyHeaders = new Map([...headers].filter(([name]) => !name.startsWith('x-amz-checksum-')));
  const listed = parsePartList(await readPayload(openPayload(maxListBytes, bodyHeaders)));
  const render = (record: ObjectRecord): string => renderResult(context, record);

  let upload: UploadRecord;
  try {
    upload = await bucket.uploads.read(request.key, id);
  } catch (error) {
    // A client repeats the call if it did not get the response, and S3 then responds as it did before.
    const completed = await bucket.readRecord(request.key);
    const isRepeated = completed?.uploadId === id && completed.etag === computeEtag(listed);
    if (!isRepeated) throw error;
    return { status: 200, body: { later: () => Promise.resolve(render(completed)) } };
  }
  const parts = await findParts(bucket, upload, id, listed);
  const size = parts.reduce((sum, part) => sum + part.size, 0);
  checkAnnouncedSize(headers, size);
  if (size > maxMultipartBytes) {
    throw new S3Error('EntityTooLarge', {
      details: { ProposedSize: String(size), MaxSizeAllowed: String(maxMultipartBytes) },
    });
  }
  const expected = readExpectedChecksum(headers, upload.checksum);
  checkWriteCondition(headers, bucket, request.key);

  const storeObject = async (): Promise<string> => {
    const full =
      upload.checksum?.type === 'FULL_OBJECT' ? createChecksum(upload.checksum.algorithm) : undefined;
    const chunks = readParts(context, bucket, id, listed, (chunk) => full?.update(chunk));
    const record = await bucket.put(
      chunks,
      (storedBytes): ObjectRecord => ({
        key: request.key,
        size: storedBytes,
        etag: computeEtag(listed),
        // As in S3, the time at which the upload was initiated.
        lastModifiedMs: upload.initiatedAtMs,
        headers: upload.headers,
        metadata: upload.metadata,
        checksum: verifyChecksum(
          upload.checksum,
          full?.digest() ?? computeComposite(upload, parts),
          expected,
        ),
        uploadId: id,
      }),
      { checkCondition: (key) => checkWriteCondition(headers, bucket, key), uploadId: id },
    );
    return render(record);
  };
  return {
    status: 200,
    headers: renderExpiry(bucket, { key: request.key, lastModifiedMs: upload.initiatedAtMs }),
    body: { later: storeObject },
  };
};

function parsePartList(body: Buffer): ListedPart[] {
  const root = parseXml(body);
  if (root.name !== 'CompleteMultipartUpload' || root.children.length === 0)
    throw new S3Error('MalformedXML');
  if (root.children.some((child) => child.name !== 'Part')) throw new S3Error('MalformedXML');
  const parts = root.children.map(parsePart);
  for (const [index, { partNumber }] of parts.entries()) {
    if (partNumber <= (parts[index - 1]?.partNumber ?? 0)) throw new S3Error('InvalidPartOrder');
  }
  return parts;
}

function parsePart(part: XmlElement): ListedPart {
  const number = findChild(part, 'PartNumber')?.text.trim();
  const etag = findChild(part, 'ETag')?.text.trim();
  if (number === undefined || etag === undefined) throw new S3Error('MalformedXML');
  const checksums = new Map<string, string>();
  for (const { name, text } of part.children) {
    if (name.startsWith('Checksum')) checksums.set(name.slice('Checksum'.length).toLowerCase(), text.trim());
    else if (name !== 'PartNumber' && name !== 'ETag') throw new S3Error('MalformedXML');
  }
  return { partNumber: readPartNumber(number), etag: etag.replaceAll('"', '').toLowerCase(), checksums };
}

/** Reads the records of the listed parts, and checks that they are as listed and large enough. */
async function findParts(
  bucket: Bucket,
  { key, checksum }: UploadRecord,
  id: string,
  listed: readonly ListedPart[],
): Promise<PartRecord[]> {
  const parts: PartRecord[] = [];
  for (const item of listed) {
    const part = await bucket.uploads.openPart(key, id, item.partNumber);
    await part?.handle.close();
    if (part === undefined || part.record.etag !== item.etag) throw createInvalidPart(id, item);
    checkPartChecksums(id, item, part.record, checksum);
    parts.push(part.record);
  }
  const small = parts.findIndex((part, index) => part.size < minPartBytes && index < parts.length - 1);
  if (small !== -1) {
    throw new S3Error('EntityTooSmall', {
      details: {
        ProposedSize: String(parts[small]?.size),
        MinSizeAllowed: String(minPartBytes),
        PartNumber: String(listed[small]?.partNumber),
        ETag: listed[small]?.etag ?? '',
      },
    });
  }
  return parts;
}

function checkPartChecksums(
  id: string,
  item: ListedPart,
  { checksum: stored }: PartRecord,
  checksum: UploadChecksum | undefined,
): void {
  for (const [algorithm, value] of item.checksums) {
    if (stored?.algorithm !== algorithm || stored.value !== value) throw createInvalidPart(id, item);
  }
  if (checksum?.type === 'COMPOSITE' && !item.checksums.has(checksum.algorithm)) {
    throw new S3Error('InvalidRequest', {
      message: `The upload was created using a ${checksum.algorithm} checksum. The complete request must include the checksum for each part. It was missing for part ${String(item.partNumber)} in the request.`,
    });
  }
}

/** The parts' bytes, in pieces of one reused buffer. Each part is checked again, because it may have been replaced. */
async function* readParts(
  { request, stopping }: OperationContext,
  bucket: Bucket,
  id: string,
  listed: readonly ListedPart[],
  onChunk: (chunk: Buffer) => void,
): AsyncGenerator<Buffer, void, undefined> {
  const buffer = Buffer.allocUnsafeSlow(copyBytes);
  for (const item of listed) {
    const part = await bucket.uploads.openPart(request.key, id, item.partNumber);
    if (part === undefined) throw createInvalidPart(id, item);
    const { record, handle } = part;
    try {
      if (record.etag !== item.etag) throw createInvalidPart(id, item);
      for (let at = 0; at < record.size;) {
        stopping.throwIfAborted();
        const { bytesRead } = await handle.read(buffer, 0, Math.min(copyBytes, record.size - at), at);
        if (bytesRead === 0) throw new Error(`part ${String(item.partNumber)} is too short`);
        const chunk = buffer.subarray(0, bytesRead);
        onChunk(chunk);
        yield chunk;
        at += bytesRead;
      }
    } finally {
      await handle.close();
    }
  }
}

function computeEtag(listed: readonly ListedPart[]): string {
  const hash = createHash('md5');
  for (const { etag } of listed) hash.update(Buffer.from(etag, 'hex'));
  return `${hash.digest('hex')}-${String(listed.length)}`;
}

function computeComposite({ checksum }: UploadRecord, parts: readonly PartRecord[]): string | undefined {
  if (checksum === undefined) return undefined;
  const running = createChecksum(checksum.algorithm);
  for (const part of parts) running.update(Buffer.from(part.checksum?.value ?? '', 'base64'));
  return `${running.digest()}-${String(parts.length)}`;
}

function verifyChecksum(
  checksum: UploadChecksum | undefined,
  value: string | undefined,
  expected: string | undefined,
): ObjectRecord['checksum'] {
  if (checksum === undefined || value === undefined) return undefined;
  // Clients send a composite checksum with or without the number of parts.
  if (expected !== undefined && expected !== value && expected !== value.replace(/-\d+$/, '')) {
    throw new S3Error('BadDigest', {
      message: `The ${checksum.algorithm.toUpperCase()} you specified did not match the calculated checksum.`,
    });
  }
  return { ...checksum, value };
}

/** Returns the object's checksum that the client expects. */
function readExpectedChecksum(
  headers: ReadonlyMap<string, string>,
  checksum: UploadChecksum | undefined,
): string | undefined {
  const type = headers.get('x-amz-checksum-type');
  const sent = checksumAlgorithms.filter((algorithm) => headers.has(`x-amz-checksum-${algorithm}`));
  const isOther = sent.some((algorithm) => algorithm !== checksum?.algorithm);
  if (isOther || (type !== undefined && type !== checksum?.type)) {
    throw new S3Error('InvalidRequest', {
      message:
        'The checksum in the headers is not of the algorithm and type with which the upload was created.',
    });
  }
  return checksum === undefined ? undefined : headers.get(`x-amz-checksum-${checksum.algorithm}`);
}

function checkAnnouncedSize(headers: ReadonlyMap<string, string>, size: number): void {
  const announced = headers.get('x-amz-mp-object-size');
  if (announced === undefined || announced === String(size)) return;
  throw new S3Error('InvalidRequest', {
    message: `The provided 'x-amz-mp-object-size' header does not match what was computed.`,
  });
}

function createInvalidPart(id: string, { partNumber, etag }: ListedPart): S3Error {
  return new S3Error('InvalidPart', {
    details: { UploadId: id, PartNumber: String(partNumber), ETag: etag },
  });
}

function renderResult({ request }: OperationContext, record: ObjectRecord): string {
  const host = request.headers.get('host') ?? '';
  return renderRoot(
    'CompleteMultipartUploadResult',
    renderText('Location', `http://${host}${request.rawPath}`),
    renderText('Bucket', request.bucket),
    renderText('Key', request.key),
    renderText('ETag', `"${record.etag}"`),
    record.checksum === undefined
      ? ''
      : renderText(`Checksum${record.checksum.algorithm.toUpperCase()}`, record.checksum.value) +
          renderText('ChecksumType', record.checksum.type ?? 'FULL_OBJECT'),
  );
}
