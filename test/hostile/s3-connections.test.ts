import { CreateBucketCommand, GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import test, { type ExecutionContext } from 'ava';
import {
  startEmbedded,
  type EmbeddedProcess,
  type EmbeddedProcessOptions,
} from '../support/embedded-process.ts';
import {
  holdS3Connections,
  pipelineUnsignedRequests,
  sendUnsignedRequests,
} from './attacks/s3-connections.ts';

const Bucket = 'model-gateway';
const credentials = { accessKeyId: 'test-key', secretAccessKey: 'test-secret' };
const env = {
  AWS_ACCESS_KEY_ID: credentials.accessKeyId,
  AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
};
/** Allowed memory growth of the embedded S3 since its start. */
const maxGrowthBytes = 120_000_000;

async function startS3(t: ExecutionContext, options: EmbeddedProcessOptions = {}) {
  const server = await startEmbedded(t, 's3', { env, ...options });
  await writeAndRead(server.endpoint, true);
  return { server, s3Endpoint: server.endpoint, peakBytes: (await server.readPeakBytes()) ?? 0 };
}

/** Checks that a client that signs its requests is served on a new connection. */
async function writeAndRead(endpoint: string, isFirst = false): Promise<void> {
  const options = { endpoint, region: 'us-east-1', forcePathStyle: true, credentials };
  const client = new S3Client(options);
  try {
    if (isFirst) await client.send(new CreateBucketCommand({ Bucket }));
    await client.send(new PutObjectCommand({ Bucket, Key: 'k', Body: 'kept' }));
    const got = await client.send(new GetObjectCommand({ Bucket, Key: 'k' }));
    if ((await got.Body!.transformToString()) !== 'kept') throw new Error('the written object is different');
  } finally {
    client.destroy();
  }
}

async function checkUnharmed(t: ExecutionContext, server: EmbeddedProcess, before: number): Promise<void> {
  await writeAndRead(server.endpoint);
  const grown = ((await server.readPeakBytes()) ?? 0) - before;
  t.log(`grew by ${Math.round(grown / 1_000_000)} MB at most`);
  t.true(grown < maxGrowthBytes);
  t.is(await server.stop(), 0);
}

test('an unsigned request closes its connection, even if it announces a long body', async (t) => {
  const { server, s3Endpoint, peakBytes } = await startS3(t);
  const { opened, closed } = await sendUnsignedRequests({ s3Endpoint });
  t.is(closed, opened);
  await checkUnharmed(t, server, peakBytes);
});

test('the number of idle connections without a signed request is limited, and they do not lock out clients that sign', async (t) => {
  const { server, s3Endpoint, peakBytes } = await startS3(t);
  const held = await holdS3Connections({ s3Endpoint, whileHeld: () => writeAndRead(s3Endpoint) });
  t.true(held <= 256, `${held} connections are held`);
  await checkUnharmed(t, server, peakBytes);
});

test('the server survives more connections than its open file limit', async (t) => {
  const { server, s3Endpoint, peakBytes } = await startS3(t, { maxFiles: 64 });
  await holdS3Connections({ s3Endpoint, whileHeld: () => Promise.resolve() });
  await checkUnharmed(t, server, peakBytes);
});

test('unsigned requests after the first one on a connection get no response', async (t) => {
  const { server, s3Endpoint, peakBytes } = await startS3(t);
  const { opened, closed, responses } = await pipelineUnsignedRequests({ s3Endpoint });
  t.is(closed, opened);
  t.true(responses <= opened, `${responses} responses`);
  await checkUnharmed(t, server, peakBytes);
});
