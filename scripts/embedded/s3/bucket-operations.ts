import { S3Error } from './errors.ts';
import type { Operation, OperationContext } from './operation.ts';
import { hasIntegrityHeader, readPayload } from './payload.ts';
import { findChild, parseXml, renderDocument, renderElement, renderText } from './xml.ts';
import type { XmlElement } from './xml.ts';
import { parseLifecycle, renderLifecycle } from './lifecycle.ts';

const maxConfigurationBytes = 64 * 1024;
const maxLifecycleBytes = 1024 * 1024;
// A thousand keys of 1024 bytes, plus space for escaping and tags.
const maxDeleteBytes = 8 * 1024 * 1024;
const maxDeleteKeys = 1000;

export const createBucket: Operation = async ({ request, store, openPayload }) => {
  const body = await readPayload(openPayload(maxConfigurationBytes));
  // The location in the body is ignored, because there is only one.
  if (body.length > 0 && parseXml(body).name !== 'CreateBucketConfiguration') {
    throw new S3Error('MalformedXML');
  }
  await store.create(request.bucket);
  return { status: 200, headers: { location: `/${request.bucket}` } };
};

export const headBucket: Operation = async ({ request, store }) => {
  store.get(request.bucket);
  return { status: 200 };
};

export const deleteBucket: Operation = async ({ request, store }) => {
  await store.delete(request.bucket);
  return { status: 204 };
};

export const deleteObjects: Operation = async (context) => {
  const bucket = context.store.get(context.request.bucket);
  const root = parseXml(await readCheckedDocument(context, maxDeleteBytes));
  const objects = root.children.filter((child) => child.name === 'Object');
  if (root.name !== 'Delete' || objects.length === 0 || objects.length > maxDeleteKeys) {
    throw new S3Error('MalformedXML');
  }
  const keys = objects.map(readKey);
  const isQuiet = findChild(root, 'Quiet')?.text.trim() === 'true';
  for (const key of keys) await bucket.delete(key);
  const deleted = keys.map((key) => renderElement('Deleted', renderText('Key', key)));
  return { status: 200, body: renderDocument('DeleteResult', ...(isQuiet ? [] : deleted)) };
};

export const putLifecycle: Operation = async (context) => {
  const bucket = context.store.get(context.request.bucket);
  await bucket.setRules(parseLifecycle(await readCheckedDocument(context, maxLifecycleBytes)));
  return { status: 200 };
};

export const getLifecycle: Operation = async ({ request, store }) => {
  const { rules } = store.get(request.bucket);
  if (rules.length === 0) {
    throw new S3Error('NoSuchLifecycleConfiguration', { details: { BucketName: request.bucket } });
  }
  return { status: 200, body: renderLifecycle(rules) };
};

export const deleteLifecycle: Operation = async ({ request, store }) => {
  await store.get(request.bucket).setRules([]);
  return { status: 204 };
};

/** Reads the document of an operation for which S3 requires a digest of the body. */
async function readCheckedDocument(
  { headers, openPayload }: OperationContext,
  maxBytes: number,
): Promise<Buffer> {
  if (!hasIntegrityHeader(headers)) {
    throw new S3Error('InvalidRequest', {
      message: 'Missing required header for this request: Content-MD5 or x-amz-checksum-*',
    });
  }
  return await readPayload(openPayload(maxBytes));
}

function readKey(object: XmlElement): string {
  // Do not ignore a version or an ETag, because deleting only those differs from deleting the object.
  if (object.children.some((child) => child.name !== 'Key')) throw new S3Error('NotImplemented');
  const key = findChild(object, 'Key')?.text ?? '';
  if (key === '') throw new S3Error('MalformedXML');
  return key;
}
