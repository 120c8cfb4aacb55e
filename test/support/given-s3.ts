import { randomBytes } from 'node:crypto';
import {
  DeleteBucketCommand,
  DeleteObjectsCommand,
  ListObjectsV2Command,
  NoSuchBucket,
  S3Client,
} from '@aws-sdk/client-s3';

/** A bucket with a random name on a shared server; closing empties and deletes it. */
export function createTestBucket(endpoint: string): {
  env: Record<string, string>;
  close(): Promise<void>;
} {
  const bucket = `mg-test-${randomBytes(6).toString('hex')}`;
  const accessKeyId = process.env['AWS_ACCESS_KEY_ID'];
  const secretAccessKey = process.env['AWS_SECRET_ACCESS_KEY'];
  if (!accessKeyId || !secretAccessKey) {
    throw new Error(
      'S3_ENDPOINT is set for the tests: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY as well.',
    );
  }
  const region = process.env['AWS_REGION'] || 'us-east-1';
  return {
    env: {
      S3_ENDPOINT: endpoint,
      S3_BUCKET: bucket,
      AWS_ACCESS_KEY_ID: accessKeyId,
      AWS_SECRET_ACCESS_KEY: secretAccessKey,
      AWS_REGION: region,
    },
    async close() {
      const credentials = { accessKeyId, secretAccessKey };
      const client = new S3Client({ endpoint, region, credentials, forcePathStyle: true });
      try {
        await deleteBucket(client, bucket);
      } catch (error) {
        // No worker of this test has created the bucket.
        if (!(error instanceof NoSuchBucket)) throw error;
      } finally {
        client.destroy();
      }
    },
  };
}

async function deleteBucket(client: S3Client, bucket: string): Promise<void> {
  for (;;) {
    const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket: bucket }));
    if (Contents.length === 0) break;
    const Objects = Contents.map(({ Key }) => ({ Key: Key! }));
    await client.send(new DeleteObjectsCommand({ Bucket: bucket, Delete: { Objects } }));
  }
  await client.send(new DeleteBucketCommand({ Bucket: bucket }));
}
