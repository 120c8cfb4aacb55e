import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, request as sendHttp, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { HeadObjectCommand, ListMultipartUploadsCommand, S3Client } from '@aws-sdk/client-s3';
import test, { type ExecutionContext } from 'ava';
import { createApiFileKey } from '../../../../shared/platform/storage/file-name.ts';
import { ObjectStore, type StoreTimeouts } from '../../../../shared/platform/storage/object-store.ts';
import { partBytes, type ObjectUpload } from '../../../../shared/platform/storage/object-upload.ts';
import { useObjects } from '../../../support/stored-responses.ts';
import { waitFor } from '../../../support/wait-for.ts';

const { signal } = new AbortController();
const type = 'application/jsonl';
const timeouts: StoreTimeouts = { attemptMs: 10_000, putMs: 30_000 };

/**
 * What becomes of a call: `lose` executes it and closes the connection instead of replying, `forget` executes it and
 * replies that there is no such upload, `hang` does nothing.
 */
type Fate = 'pass' | 'lose' | 'forget' | 'hang';

/** The calls of an upload, in the order of their arrival: `start`, `part 1`, `complete`, `abort`, otherwise the method. */
function nameCall({ method = '', url = '' }: IncomingMessage): string {
  const query = new URL(url, 'http://host').searchParams;
  if (query.has('uploads')) return 'start';
  if (query.has('partNumber')) return `part ${query.get('partNumber')}`;
  if (query.has('uploadId')) return method === 'POST' ? 'complete' : 'abort';
  return method;
}

/** A store behind a proxy that decides about each call. */
async function setUp(t: ExecutionContext, storeTimeouts = timeouts) {
  const server = await useObjects(t);
  const { config } = server;
  const calls: string[] = [];
  const held: (() => void)[] = [];
  const proxy = {
    decide: (_call: string): Fate => 'pass',
    release: () => held.splice(0).forEach((go) => go()),
  };
  const front = createServer((request, response) => {
    const call = nameCall(request);
    calls.push(call);
    const fate = proxy.decide(call);
    const { method, url: path, headers } = request;
    const forward = (): void => {
      const forwarded = sendHttp({ port: new URL(config.endpoint).port, method, path, headers }, (answer) => {
        if (fate === 'pass' || fate === 'hang') {
          answer.pipe(response.writeHead(answer.statusCode ?? 500, answer.headers));
          return;
        }
        answer.resume().on('end', () => {
          if (fate === 'lose') response.destroy();
          else response.writeHead(404).end('<Error><Code>NoSuchUpload</Code></Error>');
        });
      });
      // The store has been stopped.
      forwarded.on('error', () => response.destroy());
      request.pipe(forwarded);
    };
    if (fate === 'hang') held.push(forward);
    else forward();
  });
  front.listen(0, '127.0.0.1');
  await once(front, 'listening');
  t.teardown(() => {
    front.closeAllConnections();
    front.close();
  });
  const endpoint = `http://127.0.0.1:${(front.address() as AddressInfo).port}`;
  const objects = new ObjectStore({ ...config, endpoint }, storeTimeouts);
  t.teardown(() => objects.close());
  const client = new S3Client({ ...config, credentials: config, forcePathStyle: true });
  t.teardown(() => client.destroy());
  const key = createApiFileKey(Date.now() + 1_000_000);
  /** What the store has: unfinished uploads, and the object's bytes. */
  const inspect = async (): Promise<{ uploads: number; objectBytes: number | null }> => {
    const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand({ Bucket: config.bucket }));
    const object = await server.objects.describe(key, signal);
    return { uploads: Uploads.length, objectBytes: object?.objectBytes ?? null };
  };
  const hash = async (byteLength: number): Promise<string> => {
    const bytes = Buffer.alloc(byteLength);
    t.is((await server.objects.readRange(key, 0, bytes))?.byteLength, byteLength);
    return createHash('sha256').update(bytes).digest('hex');
  };
  return { ...server, proxy, calls, objects, client, key, inspect, hash };
}

const nothing = { uploads: 0, objectBytes: null };

async function writeAll(upload: ObjectUpload, bytes: Buffer, chunkBytes: number): Promise<void> {
  // One chunk, reused: what was written must not change with it.
  const chunk = Buffer.alloc(chunkBytes);
  for (let at = 0; at < bytes.length; at += chunkBytes) {
    const copied = bytes.copy(chunk, 0, at, at + chunkBytes);
    await upload.write(chunk.subarray(0, copied));
    chunk.fill(0);
  }
}

test.serial(
  'what was written is stored, in chunks of any size, and does not exist before it is complete',
  async (t) => {
    const { objects, key, hash, inspect, client, config } = await setUp(t);
    const bytes = randomBytes(3 * partBytes + 12_345);
    for (const chunkBytes of [65_536, 100_003, partBytes, bytes.length]) {
      const upload = objects.openUpload(key, type);
      await writeAll(upload, bytes, chunkBytes);
      t.is((await inspect()).objectBytes, null);
      t.deepEqual(await upload.complete(), { byteLength: bytes.length });
      t.is(await hash(bytes.length), createHash('sha256').update(bytes).digest('hex'), String(chunkBytes));
      t.deepEqual(await inspect(), { uploads: 0, objectBytes: bytes.length });
      const head = await client.send(new HeadObjectCommand({ Bucket: config.bucket, Key: key }));
      t.is(head.ContentType, type);
      // This has no effect any more.
      await upload.abort();
      t.is((await inspect()).objectBytes, bytes.length);
      await objects.delete(key);
    }
  },
);

test.serial('an object of at most one part is stored by one request, also an empty one', async (t) => {
  const { objects, key, inspect, calls } = await setUp(t);
  for (const byteLength of [0, 1, partBytes]) {
    const upload = objects.openUpload(key, type);
    await writeAll(upload, Buffer.alloc(byteLength), 1_000_000);
    t.deepEqual(await upload.complete(), { byteLength });
    t.deepEqual(await inspect(), { uploads: 0, objectBytes: byteLength });
  }
  t.deepEqual(calls.splice(0), ['PUT', 'PUT', 'PUT']);
  const upload = objects.openUpload(key, type);
  await writeAll(upload, Buffer.alloc(partBytes + 1), 1_000_000);
  t.deepEqual(await upload.complete(), { byteLength: partBytes + 1 });
  t.deepEqual(await inspect(), { uploads: 0, objectBytes: partBytes + 1 });
  t.deepEqual(calls, ['start', 'part 1', 'part 2', 'complete']);
});

test.serial(
  'a writer waits while two parts are in memory, and goes on when the first is stored',
  async (t) => {
    const { objects, key, proxy, calls } = await setUp(t, { attemptMs: 60_000, putMs: 60_000 });
    const upload = objects.openUpload(key, type);
    proxy.decide = (call) => (call === 'part 1' ? 'hang' : 'pass');
    t.is(upload.write(Buffer.alloc(partBytes)), undefined, 'there is memory');
    await upload.write(Buffer.alloc(partBytes));
    let isStored = false;
    const waiting = Promise.resolve(upload.write(Buffer.alloc(1))).then(() => (isStored = true));
    await waitFor('the first part', () => calls.includes('part 1'));
    const early = async (): Promise<void> => await upload.write(Buffer.alloc(1));
    await t.throwsAsync(early, { message: /wait for the previous call/ });
    t.false(isStored);
    proxy.release();
    await waiting;
    t.deepEqual(await upload.complete(), { byteLength: 2 * partBytes + 1 });
    t.deepEqual(calls, ['start', 'part 1', 'part 2', 'part 3', 'complete']);
  },
);

test.serial('a call whose response is lost is sent again, so the upload succeeds', async (t) => {
  const { objects, key, proxy, calls, hash } = await setUp(t);
  const bytes = randomBytes(2 * partBytes);
  const upload = objects.openUpload(key, type);
  // The first of each is executed, but the client does not learn of it.
  proxy.decide = (call) =>
    call !== 'start' && calls.filter((other) => other === call).length === 1 ? 'lose' : 'pass';
  await writeAll(upload, bytes, partBytes);
  t.deepEqual(await upload.complete(), { byteLength: bytes.length });
  t.deepEqual(calls, ['start', 'part 1', 'part 1', 'part 2', 'part 2', 'complete', 'complete']);
  t.is(await hash(bytes.length), createHash('sha256').update(bytes).digest('hex'));
});

test.serial(
  'if a repeated completion finds no upload because the first one succeeded, the upload is complete',
  async (t) => {
    const { objects, key, proxy, calls, hash, inspect } = await setUp(t);
    const bytes = randomBytes(partBytes + 1);
    const write = async (): Promise<ObjectUpload> => {
      const upload = objects.openUpload(key, type);
      await upload.write(bytes);
      return upload;
    };
    // Unlike S3, many servers do not remember complete uploads.
    proxy.decide = (call) => (call === 'complete' ? 'forget' : 'pass');
    t.deepEqual(await (await write()).complete(), { byteLength: bytes.length });
    t.is(await hash(bytes.length), createHash('sha256').update(bytes).digest('hex'));
    t.is(calls.at(-1), 'HEAD');

    // The object of another upload is not mistaken for this one.
    const other = await write();
    proxy.decide = (call) => (call === 'complete' ? 'hang' : 'pass');
    const failed = t.throwsAsync(other.complete(), { name: 'NoSuchUpload' });
    await waitFor('the completion', () => calls.filter((call) => call === 'complete').length === 2);
    await objects.abortUploads('batch-files/', Date.now() + 60_000, signal);
    proxy.release();
    await failed;
    t.is((await inspect()).objectBytes, bytes.length);
    await other.abort();
    t.deepEqual(await inspect(), nothing);
  },
);

test.serial('an abort leaves nothing, whatever has been stored by then', async (t) => {
  const { objects, key, inspect, calls } = await setUp(t);
  const small = objects.openUpload(key, type);
  await small.write(Buffer.alloc(10));
  await Promise.all([small.abort(), small.abort()]);
  await objects.openUpload(key, type).abort();
  t.deepEqual(calls, [], 'nothing was stored');

  for (const byteLength of [partBytes + 1, 3 * partBytes]) {
    const upload = objects.openUpload(key, type);
    await writeAll(upload, Buffer.alloc(byteLength), partBytes);
    // A part is on its way.
    await upload.abort();
    t.deepEqual(await inspect(), nothing);
    await t.throwsAsync(async () => await upload.write(Buffer.alloc(1)), { name: 'AbortError' });
    await t.throwsAsync(upload.complete(), { name: 'AbortError' });
  }

  for (const byteLength of [10, partBytes + 1]) {
    const upload = objects.openUpload(key, type);
    await writeAll(upload, Buffer.alloc(byteLength), partBytes);
    const failed = t.throwsAsync(upload.complete(), { name: 'AbortError' });
    await upload.abort();
    await failed;
    t.deepEqual(await inspect(), nothing);
  }
});

test.serial("the caller's signal ends the call in progress, and an abort then leaves nothing", async (t) => {
  const { objects, key, inspect, proxy, calls } = await setUp(t, { attemptMs: 60_000, putMs: 60_000 });
  const caller = new AbortController();
  const upload = objects.openUpload(key, type, { signal: caller.signal });
  proxy.decide = (call) => (call === 'part 2' ? 'hang' : 'pass');
  const writing = t.throwsAsync(writeAll(upload, Buffer.alloc(4 * partBytes), partBytes), {
    name: 'AbortError',
  });
  await waitFor('the second part', () => calls.includes('part 2'));
  caller.abort();
  await writing;
  await t.throwsAsync(async () => await upload.write(Buffer.alloc(1)), { name: 'AbortError' });
  await upload.abort();
  t.deepEqual(await inspect(), nothing);
});

test.serial(
  'a store that does not respond fails the upload in time, with the error of other calls, and an abort does not throw',
  async (t) => {
    const { objects, key, inspect, proxy } = await setUp(t, { attemptMs: 1_500, putMs: 20_000 });
    const upload = objects.openUpload(key, type);
    proxy.decide = (call) => (call === 'part 2' || call === 'abort' ? 'hang' : 'pass');
    const error = await t.throwsAsync(writeAll(upload, Buffer.alloc(4 * partBytes), partBytes));
    t.is(error?.name, 'TimeoutError');
    // Later calls fail at once, with the same error.
    t.is(await t.throwsAsync(async () => await upload.write(Buffer.alloc(1))), error);
    t.is(await t.throwsAsync(upload.complete()), error);
    await upload.abort();
    t.true((await inspect()).uploads > 0, 'it could not be removed now');
    proxy.decide = () => 'pass';
    t.true((await objects.abortUploads('batch-files/', Date.now() + 60_000, signal))! > 0);
    t.deepEqual(await inspect(), nothing);
  },
);

test.serial(
  'if the server dies during an upload, the upload fails, and the store has no object',
  async (t) => {
    const { objects, key, inspect, stop, start } = await setUp(t);
    const upload = objects.openUpload(key, type);
    await writeAll(upload, Buffer.alloc(2 * partBytes + 1), partBytes);
    await stop();
    await t.throwsAsync(writeAll(upload, Buffer.alloc(3 * partBytes), partBytes));
    await start();
    await upload.abort();
    t.deepEqual(await inspect(), nothing);
  },
);
