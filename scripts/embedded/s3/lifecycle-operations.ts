import { readCheckedDocument } from './bucket-operations.ts';
import { S3Error } from './errors.ts';
import { parseLifecycle, renderLifecycle } from './lifecycle.ts';
import type { Operation } from './operation.ts';

const maxLifecycleBytes = 1024 * 1024;

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
