import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ListMultipartUploadsCommand, S3Client } from '@aws-sdk/client-s3';
import test from 'ava';
import { createApiFileKey } from '../../shared/platform/storage/file-name.ts';
import { ObjectStore } from '../../shared/platform/storage/object-store.ts';
import { partBytes } from '../../shared/platform/storage/object-upload.ts';
import { openTestS3 } from '../support/stores.ts';

/** Uploads in parts, on the S3 server of `S3_ENDPOINT` if it is set. */

const { signal } = new AbortController();
let objects: ObjectStore;
let countUploads: () => Promise<number>;
let close: () => Promise<void>;

test.before(async () => {
  const dir = await mkdtemp(join(tmpdir(), 'mg-test-'));
  const s3 = await openTestS3(dir);
  const config = {
    endpoint: s3.env['S3_ENDPOINT']!,
    region: s3.env['AWS_REGION'] ?? 'us-east-1',
    bucket: s3.env['S3_BUCKET'] ?? 'kept',
    accessKeyId: s3.env['AWS_ACCESS_KEY_ID']!,
    secretAccessKey: s3.env['AWS_SECRET_ACCESS_KEY']!,
    publicUrl: null,
    manageBucket: 'auto',
  } as const;
  objects = new ObjectStore(config);
  await objects.prepareBucket();
  const client = new S3Client({ ...config, credentials: config, forcePathStyle: true });
  countUploads = async () => {
    const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand({ Bucket: config.bucket }));
    return Uploads.length;
  };
  close = async () => {
    objects.close();
    client.destroy();
    await s3.close();
    await rm(dir, { recursive: true, force: true });
  };
});
test.after.always(() => close?.());

test.serial('objects of no, one and several parts are stored as they were written', async (t) => {
  const bytes = randomBytes(2 * partBytes + 1);
  for (const byteLength of [0, 1, partBytes, partBytes + 1, bytes.length]) {
    const key = createApiFileKey(Date.now() + 1_000_000);
    const upload = objects.openUpload(key, 'application/jsonl');
    for (let at = 0; at < byteLength; at += 1_000_000) {
      await upload.write(bytes.subarray(at, Math.min(at + 1_000_000, byteLength)));
    }
    t.is((await objects.describe(key, signal))?.objectBytes, undefined);
    t.deepEqual(await upload.complete(), { byteLength });
    t.is((await objects.describe(key, signal))?.objectBytes, byteLength);
    if (byteLength === 0) continue;
    const stored = await objects.getRange(key, 0, byteLength);
    const hash = (of: Buffer): string => createHash('sha256').update(of).digest('hex');
    t.is(hash(stored!), hash(bytes.subarray(0, byteLength)));
    const middle = await objects.getRange(key, byteLength - 1, 10);
    t.deepEqual(middle, bytes.subarray(byteLength - 1, byteLength));
  }
  t.is(await countUploads(), 0);
});

test.serial(
  'an aborted upload leaves nothing, and one that its process leaves behind is found by its age',
  async (t) => {
    const key = createApiFileKey(Date.now() + 1_000_000);
    const start = async () => {
      const upload = objects.openUpload(key, 'application/jsonl');
      await upload.write(Buffer.alloc(2 * partBytes + 1));
      return upload;
    };
    const aborted = await start();
    await aborted.abort();
    t.is(await countUploads(), 0);
    await start();
    await start();
    t.is(await objects.abortUploads('batch-files/', Date.now() - 60_000, signal), 0);
    t.is(await countUploads(), 2);
    t.is(await objects.abortUploads('batch-files/', Date.now() + 60_000, signal), 2);
    t.is(await countUploads(), 0);
    t.is(await objects.describe(key, signal), null);
  },
);
