import {
  createBucket,
  deleteBucket,
  deleteLifecycle,
  deleteObjects,
  getLifecycle,
  headBucket,
  putLifecycle,
} from './bucket-operations.ts';
import { completeUpload } from './complete-upload.ts';
import { S3Error } from './errors.ts';
import { listObjects } from './list-objects.ts';
import { listUploads } from './list-uploads.ts';
import { deleteObject, getObject, headObject, putObject } from './object-operations.ts';
import { abortUpload, createUpload, listParts, uploadPart } from './multipart-operations.ts';
import type { Operation } from './operation.ts';
import type { S3Request } from './parse-request.ts';
import { overridableHeaders } from './read-object.ts';

interface OperationEntry {
  operation: Operation;
  /** Query parameters that select this operation. */
  needs: readonly string[];
  allows: readonly string[];
}

const overrides = overridableHeaders.map((name) => `response-${name}`);
const listParameters = [
  'prefix',
  'delimiter',
  'max-keys',
  'continuation-token',
  'start-after',
  'encoding-type',
  'fetch-owner',
];

const uploadListParameters = [
  'prefix',
  'delimiter',
  'key-marker',
  'upload-id-marker',
  'max-uploads',
  'encoding-type',
];

const objectOperations: Readonly<Record<string, readonly OperationEntry[]>> = {
  GET: [
    { operation: getObject, needs: [], allows: overrides },
    { operation: listParts, needs: ['uploadId'], allows: ['max-parts', 'part-number-marker'] },
  ],
  HEAD: [{ operation: headObject, needs: [], allows: overrides }],
  PUT: [
    { operation: putObject, needs: [], allows: [] },
    { operation: uploadPart, needs: ['partNumber', 'uploadId'], allows: [] },
  ],
  POST: [
    { operation: createUpload, needs: ['uploads'], allows: [] },
    { operation: completeUpload, needs: ['uploadId'], allows: [] },
  ],
  DELETE: [
    { operation: deleteObject, needs: [], allows: [] },
    { operation: abortUpload, needs: ['uploadId'], allows: [] },
  ],
};

const bucketOperations: Readonly<Record<string, readonly OperationEntry[]>> = {
  GET: [
    { operation: listObjects, needs: ['list-type'], allows: listParameters },
    { operation: listUploads, needs: ['uploads'], allows: uploadListParameters },
    { operation: getLifecycle, needs: ['lifecycle'], allows: [] },
  ],
  HEAD: [{ operation: headBucket, needs: [], allows: [] }],
  PUT: [
    { operation: createBucket, needs: [], allows: [] },
    { operation: putLifecycle, needs: ['lifecycle'], allows: [] },
  ],
  POST: [{ operation: deleteObjects, needs: ['delete'], allows: [] }],
  DELETE: [
    { operation: deleteBucket, needs: [], allows: [] },
    { operation: deleteLifecycle, needs: ['lifecycle'], allows: [] },
  ],
};

/**
 * Selects the operation for a request. Rejects unknown query parameters instead of ignoring them, because they may
 * change the meaning of the request (a version, a part, an ACL).
 */
export function chooseOperation(request: S3Request): Operation {
  const names = request.query
    .map(([name]) => name)
    .filter((name) => name !== 'x-id' && !name.toLowerCase().startsWith('x-amz-'));
  const table = request.key === '' ? bucketOperations : objectOperations;
  const candidates =
    request.bucket !== '' && Object.hasOwn(table, request.method) ? table[request.method] : [];
  const entry = candidates?.find(
    ({ needs, allows }) =>
      needs.every((name) => names.includes(name)) &&
      names.every((name) => needs.includes(name) || allows.includes(name)),
  );
  if (entry === undefined) {
    throw new S3Error('NotImplemented', {
      details: { Method: request.method, Parameters: names.join(', ') },
    });
  }
  return entry.operation;
}
