// Runs alone: it measures when a process is killed by the size of a file.
import { cp, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import {
  CreateBucketCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  ListPartsCommand,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import type { S3Client } from '@aws-sdk/client-s3';
import test from 'ava';
import type { ExecutionContext } from 'ava';
import { waitFor } from '../../../support/wait-for.ts';
import { env, run } from './run-main.ts';
import type { Run } from './run-main.ts';
import {
  bucketName as Bucket,
  createClient,
  makeBytes,
  makeTempDir,
  md5Etag,
  minPartBytes,
  readObject,
  startTestServer,
  startUpload,
} from './support.ts';

async function start(t: ExecutionContext, dir: string): Promise<{ server: Run; client: S3Client }> {
  const server = run(t, ['--dir', dir], env);
  const { endpoint } = JSON.parse(await server.firstLine) as { endpoint: string };
  return { server, client: createClient(t, endpoint) };
}

async function kill({ child, ended }: Run): Promise<void> {
  child.kill('SIGKILL');
  await ended;
}

/** The size of the largest file that the server is writing. */
async function measureTemp(dir: string): Promise<number> {
  const sizes = (await readdir(join(dir, 'temp'))).map(async (name) => {
    // It may have been renamed in the meantime.
    const found = await stat(join(dir, 'temp', name)).catch(() => null);
    return found?.isFile() === true ? found.size : 0;
  });
  return Math.max(0, ...(await Promise.all(sizes)));
}

const count = async (client: S3Client): Promise<{ objects: number; uploads: number }> => {
  const { KeyCount = 0 } = await client.send(new ListObjectsV2Command({ Bucket }));
  const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand({ Bucket }));
  return { objects: KeyCount, uploads: Uploads.length };
};

test.serial(
  'if the server is killed during a part, the parts before it are there, and the upload can go on',
  async (t) => {
    const dir = await makeTempDir(t);
    const first = await start(t, dir);
    await first.client.send(new CreateBucketCommand({ Bucket }));
    const upload = await startUpload(first.client, 'k');
    const bodies = [makeBytes(minPartBytes), makeBytes(minPartBytes), makeBytes(minPartBytes)];
    await upload.put(1, bodies[0]!);
    await upload.put(2, bodies[1]!);
    const Body = new PassThrough();
    const target = { Bucket, Key: 'k', UploadId: upload.id };
    const part = { ...target, PartNumber: 3, Body, ContentLength: minPartBytes };
    const interrupted = t.throwsAsync(first.client.send(new UploadPartCommand(part)));
    Body.write(bodies[2]!.subarray(0, minPartBytes / 2));
    await waitFor('a half part', async () => (await measureTemp(dir)) > 1_000_000);
    await kill(first.server);
    await interrupted;
    Body.destroy();

    const { client } = await start(t, dir);
    t.deepEqual(await count(client), { objects: 0, uploads: 1 });
    t.is(await measureTemp(dir), 0);
    const { Parts = [] } = await client.send(new ListPartsCommand(target));
    t.deepEqual(
      Parts.map(({ PartNumber, ETag }) => [PartNumber, ETag]),
      [
        [1, md5Etag(bodies[0]!)],
        [2, md5Etag(bodies[1]!)],
      ],
    );
  },
);

test.serial(
  'if the server is killed during a completion, either the upload or the object exists, and it is whole',
  async (t) => {
    t.timeout(240_000);
    const dir = await makeTempDir(t);
    let { server, client } = await start(t, dir);
    await client.send(new CreateBucketCommand({ Bucket }));
    const body = makeBytes(8 * minPartBytes);
    const partOf = (number: number): Buffer =>
      body.subarray((number - 1) * minPartBytes, number * minPartBytes);
    const create = async (key: string) => {
      const upload = await startUpload(client, key);
      for (let number = 1; number <= 8; number += 1) await upload.put(number, partOf(number));
      return upload;
    };
    const outcomes: string[] = [];
    // From the first byte of the copy to the moments around its last one.
    const moments = [
      1,
      8_000_000,
      30_000_000,
      body.length,
      body.length,
      body.length,
      body.length,
      body.length,
    ];
    for (const [index, bytes] of moments.entries()) {
      const key = `k${index}`;
      const upload = await create(key);
      const completing = upload.complete().then(
        () => 'ok',
        () => 'cut',
      );
      let isSettled = false;
      completing.finally(() => (isSettled = true)).catch(() => undefined);
      await waitFor('the copy', async () => isSettled || (await measureTemp(dir)) >= bytes);
      // The copy is complete: let the next steps begin, a different number of them each time.
      if (bytes === body.length) await new Promise((resolve) => setTimeout(resolve, (index - 3) * 3));
      await kill(server);
      const reply = await completing;

      ({ server, client } = await start(t, dir));
      const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket, Prefix: key }));
      const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand({ Bucket, Prefix: key }));
      t.is(Contents.length + Uploads.length, 1, `${key}: ${reply}`);
      outcomes.push(`${reply}, ${Contents.length === 1 ? 'object' : 'upload'}`);
      if (Contents.length === 1) {
        t.true((await readObject(client, key)).equals(body));
      } else {
        t.is(reply, 'cut');
        const target = { Bucket, Key: key, UploadId: upload.id };
        const { Parts = [] } = await client.send(new ListPartsCommand(target));
        t.deepEqual(
          Parts.map(({ ETag }) => ETag),
          Array.from({ length: 8 }, (_, at) => md5Etag(partOf(at + 1))),
        );
      }
      t.is(await measureTemp(dir), 0);
    }
    t.log(outcomes);
    t.true(outcomes.includes('cut, upload'));
  },
);

test.serial(
  'if the server died between storing the object and removing its upload, the next start removes the upload',
  async (t) => {
    const server = await startTestServer(t);
    const { client, dir } = server;
    const upload = await startUpload(client, 'k');
    await upload.put(1, makeBytes(minPartBytes));
    await upload.put(2, Buffer.from('end'));
    const uploads = join(dir, 'buckets', Bucket, 'uploads');
    const kept = join(await makeTempDir(t), 'uploads');
    await cp(uploads, kept, { recursive: true });
    const etag = await upload.complete();
    await server.close();
    await cp(kept, uploads, { recursive: true });
    t.is((await readdir(uploads)).length, 1);

    const next = await startTestServer(t, { dir });
    t.deepEqual(await count(next.client), { objects: 1, uploads: 0 });
    t.deepEqual(await readdir(uploads), []);
    const { Contents = [] } = await next.client.send(new ListObjectsV2Command({ Bucket }));
    t.is(Contents[0]?.ETag, etag);
  },
);

test.serial('a server that stops ends a completion that goes on without its client', async (t) => {
  const server = await startTestServer(t, { closeGraceMs: 0 });
  const upload = await startUpload(server.client, 'k');
  const body = makeBytes(minPartBytes);
  for (let number = 1; number <= 8; number += 1) await upload.put(number, body);
  const completing = upload.complete().catch(() => undefined);
  await waitFor('the copy', async () => (await measureTemp(server.dir)) > 0);
  await server.close();
  await completing;
  const names = await readdir(join(server.dir, 'temp'));
  t.deepEqual(names, []);
  const next = await startTestServer(t, { dir: server.dir });
  const { objects, uploads } = await count(next.client);
  t.is(objects + uploads, 1);
});
