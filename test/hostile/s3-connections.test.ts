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
/** Of the embedded S3, beside what it has at its start. */
const maxGrowthBytes = 120_000_000;

async function startS3(t: ExecutionContext, options: EmbeddedProcessOptions = {}) {
  const server = await startEmbedded(t, 's3', { env, ...options });
  await writeAndRead(server.endpoint, true);
  return { server, s3Endpoint: server.endpoint, peakBytes: (await server.readPeakBytes()) ?? 0 };
}

/** Whether somebody with the keys is served, by a connection that he opens now. */
async function writeAndRead(endpoint: string, isFirst = false): Promise<void> {
  const options = { endpoint, region: 'us-east-1', forcePathStyle: true, credentials };
  const client = new S3Client(options);
  try {
    if (isFirst) await client.send(new CreateBucketCommand({ Bucket }));
    await client.send(new PutObjectCommand({ Bucket, Key: 'k', Body: 'kept' }));
    const got = await client.send(new GetObjectCommand({ Bucket, Key: 'k' }));
    if ((await got.Body!.transformToString()) !== 'kept') throw new Error('what was written is not there');
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

test('a request without a signature ends its connection, whatever it announces', async (t) => {
  const { server, s3Endpoint, peakBytes } = await startS3(t);
  const { opened, closed } = await sendUnsignedRequests({ s3Endpoint });
  t.is(closed, opened);
  await checkUnharmed(t, server, peakBytes);
});

test('connections that are held without a signature are bounded, and keep out nobody that has the keys', async (t) => {
  const { server, s3Endpoint, peakBytes } = await startS3(t);
  const held = await holdS3Connections({ s3Endpoint, whileHeld: () => writeAndRead(s3Endpoint) });
  t.true(held <= 256, `${held} are held`);
  await checkUnharmed(t, server, peakBytes);
});

test('more connections than there are files for are survived', async (t) => {
  const { server, s3Endpoint, peakBytes } = await startS3(t, { maxFiles: 64 });
  await holdS3Connections({ s3Endpoint, whileHeld: () => Promise.resolve() });
  await checkUnharmed(t, server, peakBytes);
});

test('unsigned requests behind the first one are not answered', async (t) => {
  const { server, s3Endpoint, peakBytes } = await startS3(t);
  const { opened, closed, answers } = await pipelineUnsignedRequests({ s3Endpoint });
  t.is(closed, opened);
  t.true(answers <= opened, `${answers} answers`);
  await checkUnharmed(t, server, peakBytes);
});
