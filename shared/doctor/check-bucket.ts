import { randomUUID } from 'node:crypto';
import type { ObjectStore } from '../platform/storage/object-store.ts';
import { answerPrefix } from '../platform/storage/lifecycle-rules.ts';
import { ok, warning, type Finding } from './finding.ts';

const check = 'bucket rules';

const findingsOfRules: Readonly<Record<Awaited<ReturnType<ObjectStore['findExpirations']>>, Finding>> = {
  set: ok(check, 'it deletes stored responses after a day'),
  missing: warning(
    check,
    'it has no lifecycle rules of ours: stored responses are never deleted',
    'Set S3_MANAGE_BUCKET=on, or add the three rules (docs/deployment.md, the object store).',
  ),
  hidden: warning(
    check,
    'its lifecycle rules may not be read',
    'Check that it has the three rules (docs/deployment.md, the object store).',
  ),
  unsupported: warning(
    check,
    'the server has no lifecycle rules: stored responses are never deleted',
    `Delete objects older than a day under ${answerPrefix} by other means.`,
  ),
};

/** Checks that objects can be written, read and deleted, and that the bucket deletes them in time. */
export async function checkBucket(objects: ObjectStore, signal: AbortSignal): Promise<Finding[]> {
  if (!(await objects.exists(signal)))
    return [
      warning(
        'bucket',
        'it does not exist yet',
        'The first worker creates it, if its user may. Otherwise create it.',
      ),
    ];
  const key = `${answerPrefix}doctor-${randomUUID()}`;
  await objects.put(key, Buffer.from('doctor'), 'text/plain', signal);
  const read = await objects.getRange(key, 0, 6, signal);
  await objects.delete(key);
  if (read?.toString() !== 'doctor') throw new Error('an object that was just written cannot be read');
  return [
    ok('bucket', 'objects can be written, read and deleted'),
    findingsOfRules[await objects.findExpirations()],
  ];
}
