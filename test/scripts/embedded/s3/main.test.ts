import type { ChildProcess } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import {
  CreateBucketCommand,
  GetObjectCommand,
  HeadObjectCommand,
  PutObjectCommand,
} from '@aws-sdk/client-s3';
import test from 'ava';
import { startEmbeddedS3 } from '../../../../scripts/embedded/s3/server.ts';
import { env, run } from './run-main.ts';
import {
  bucketName as Bucket,
  createClient,
  credentials,
  makeTempDir,
  minPartBytes,
  startUpload,
} from './support.ts';

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  test(`the server prints its endpoint as one line of JSON, accepts requests, and exits with 0 on ${signal}`, async (t) => {
    const dir = await makeTempDir(t);
    const { child, ended, firstLine } = run(t, ['--port', '0', '--dir', dir], env);
    const { endpoint } = JSON.parse(await firstLine) as { endpoint: string };
    t.regex(endpoint, /^http:\/\/127\.0\.0\.1:\d+$/);
    await createClient(t, endpoint).send(new CreateBucketCommand({ Bucket }));
    child.kill(signal);
    const { code, stdout, stderr } = await ended;
    t.is(code, 0);
    t.is(stdout, `{"endpoint":"${endpoint}"}\n`);
    t.is(stderr, '');
  });
}

test('in production, or without credentials or a folder, the server refuses to start and prints one sentence', async (t) => {
  const dir = await makeTempDir(t);
  const cases: [string[], object, RegExp][] = [
    [['--dir', dir], { ...env, NODE_ENV: 'production' }, /does not run with NODE_ENV=production\.\n$/],
    [['--dir', dir], {}, /AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must be set/],
    [[], env, /^Usage: /],
    [['--dir', dir, '--nonsense'], env, /nonsense/],
  ];
  for (const [args, environment, message] of cases) {
    const { code, stdout, stderr } = await run(t, args, environment).ended;
    t.is(code, 1);
    t.is(stdout, '');
    t.regex(stderr, message);
    t.is(stderr.trim().split('\n').length, 1);
  }
});

test('a second server on the same folder fails to start, across processes and within one', async (t) => {
  const dir = await makeTempDir(t);
  const first = run(t, ['--dir', dir], env);
  await first.firstLine;
  const { code, stderr } = await run(t, ['--dir', dir], env).ended;
  t.is(code, 1);
  t.regex(stderr, new RegExp(`in use by process ${String(first.child.pid)};`));
  await t.throwsAsync(startEmbeddedS3({ dir, ...credentials }), { message: /in use by process/ });
  first.child.kill('SIGTERM');
  await first.ended;

  const server = await startEmbeddedS3({ dir, ...credentials });
  await t.throwsAsync(startEmbeddedS3({ dir, ...credentials }), { message: /in use by process/ });
  await server.close();
});

test('after the server is killed, only complete objects exist, and its lock does not block the next start', async (t) => {
  const dir = await makeTempDir(t);
  const first = run(t, ['--dir', dir], env);
  const { endpoint } = JSON.parse(await first.firstLine) as { endpoint: string };
  const client = createClient(t, endpoint);
  await client.send(new CreateBucketCommand({ Bucket }));
  await client.send(new PutObjectCommand({ Bucket, Key: 'k', Body: 'kept' }));
  first.child.kill('SIGKILL');
  await first.ended;
  // The temporary file of an upload that a crash interrupted.
  await writeFile(join(dir, 'temp', 'half'), 'half an upload');

  const second = run(t, ['--dir', dir], env);
  const next = JSON.parse(await second.firstLine) as { endpoint: string };
  const got = await createClient(t, next.endpoint).send(new GetObjectCommand({ Bucket, Key: 'k' }));
  t.is(await got.Body?.transformToString(), 'kept');
  await t.throwsAsync(readFile(join(dir, 'temp', 'half')), { code: 'ENOENT' });
});

test('a stale lock whose process id was reused by another process is taken over', async (t) => {
  const dir = await makeTempDir(t);
  await writeFile(join(dir, 'lock'), JSON.stringify({ pid: process.pid, startedAt: '1' }));
  const server = await startEmbeddedS3({ dir, ...credentials });
  await server.close();
  await writeFile(join(dir, 'lock'), 'damaged');
  const again = await startEmbeddedS3({ dir, ...credentials });
  await again.close();
  t.pass();
});

test('a process with a 24 MB heap can store and return an object of 20 MB, because it streams the bytes', async (t) => {
  const dir = await makeTempDir(t);
  const { firstLine, child } = run(t, ['--dir', dir], env, ['--max-old-space-size=24']);
  const { endpoint } = JSON.parse(await firstLine) as { endpoint: string };
  const client = createClient(t, endpoint);
  await client.send(new CreateBucketCommand({ Bucket }));
  await client.send(new PutObjectCommand({ Bucket, Key: 'warm', Body: 'x' }));
  const before = await readPeakMemory(child);
  const size = 20 * 1024 * 1024;
  const piece = Buffer.alloc(64 * 1024, 7);
  const Body = Readable.from(Array.from({ length: size / piece.length }, () => piece));
  await client.send(new PutObjectCommand({ Bucket, Key: 'big', Body, ContentLength: size }));
  const got = await client.send(new GetObjectCommand({ Bucket, Key: 'big' }));
  let received = 0;
  for await (const chunk of got.Body as AsyncIterable<Buffer>) received += chunk.length;
  t.is(received, size);
  const after = await readPeakMemory(child);
  if (before !== undefined && after !== undefined) {
    t.log(`peak resident memory grew from ${String(before)} to ${String(after)} KiB`);
    t.true(after - before < 48 * 1024);
  }
});

test('a process with a 24 MB heap can assemble an object of 60 MB from parts', async (t) => {
  const dir = await makeTempDir(t);
  const { firstLine, child } = run(t, ['--dir', dir], env, ['--max-old-space-size=24']);
  const { endpoint } = JSON.parse(await firstLine) as { endpoint: string };
  const client = createClient(t, endpoint);
  await client.send(new CreateBucketCommand({ Bucket }));
  const part = Buffer.alloc(minPartBytes, 7);
  const upload = await startUpload(client, 'big');
  await upload.put(1, part);
  const before = await readPeakMemory(child);
  for (let number = 2; number <= 12; number += 1) await upload.put(number, part);
  await upload.complete();
  const after = await readPeakMemory(child);
  const { ContentLength } = await client.send(new HeadObjectCommand({ Bucket, Key: 'big' }));
  t.is(ContentLength, 12 * minPartBytes);
  if (before !== undefined && after !== undefined) {
    t.log(`peak resident memory grew from ${String(before)} to ${String(after)} KiB`);
    t.true(after - before < 48 * 1024);
  }
});

// Buffers are outside the heap, so this checks the memory of the whole process, if the system reports it.
async function readPeakMemory(child: ChildProcess): Promise<number | undefined> {
  if (process.platform !== 'linux') return undefined;
  const status = await readFile(`/proc/${String(child.pid)}/status`, 'utf8');
  return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]);
}
