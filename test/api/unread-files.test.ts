import { once } from 'node:events';
import { randomBytes } from 'node:crypto';
import { get, request, type IncomingMessage } from 'node:http';
import { buffer } from 'node:stream/consumers';
import test, { type ExecutionContext } from 'ava';
import { createFileKey } from '../../shared/storage/file-name.ts';
import { ObjectStore } from '../../shared/storage/object-store.ts';
import { useStack, type StackOptions, type TestStack } from '../support/stack.ts';

/** Links to files, which need no key: what one caller leaves unread is taken from nobody else. */

interface FileStack extends TestStack {
  /** Keeps a file as a worker does. @returns its link */
  readonly keep: (bytes: Buffer) => Promise<string>;
}

async function useFileStack(t: ExecutionContext, options: StackOptions): Promise<FileStack> {
  const stack = await useStack(t, { env: { TRUST_PROXY: 'on' }, workers: [], ...options });
  const objects = new ObjectStore(stack.config.s3);
  t.teardown(() => objects.close());
  await objects.prepareBucket();
  const keep = async (bytes: Buffer): Promise<string> => {
    const key = createFileKey('image/png');
    await objects.put(key, bytes, 'image/png');
    return `${stack.url}/${key}`;
  };
  return { ...stack, keep };
}

/** Asks on a connection of its own, and resolves with the answer's beginning. Of its body nothing is read yet. */
async function open(t: ExecutionContext, link: string, address: string): Promise<IncomingMessage> {
  const download = get(link, { agent: false, headers: { 'x-forwarded-for': address } });
  t.teardown(() => download.destroy());
  const [response] = (await once(download, 'response')) as [IncomingMessage];
  // Those that are ended unread say so.
  response.on('error', () => undefined);
  return response;
}

const read = async (t: ExecutionContext, link: string, address: string): Promise<Buffer> =>
  await buffer(await open(t, link, address));

/** More than the sockets of both sides take. */
const large = randomBytes(20_000_000);
const [home, away] = ['192.0.2.1', '198.51.100.7'];

test('downloads that nobody reads hold nothing of the object store, and are whole when they are read at last', async (t) => {
  const stack = await useFileStack(t, {});
  const small = randomBytes(1_000);
  const [largeLink, smallLink] = [await stack.keep(large), await stack.keep(small)];
  const downloads = await Promise.all(Array.from({ length: 60 }, () => open(t, largeLink, home)));
  t.deepEqual([...new Set(downloads.map(({ statusCode }) => statusCode))], [200]);
  // Of the same address, and of another.
  t.true((await read(t, smallLink, home)).equals(small));
  t.true((await read(t, smallLink, away)).equals(small));
  const health = (await (await fetch(`${stack.url}/v1/health`)).json()) as { checks: { s3: string } };
  t.is(health.checks.s3, 'ok');
  t.true((await buffer(downloads[0]!)).equals(large));
  t.true((await buffer(downloads[59]!)).equals(large));
});

test('an address that leaves its share of downloads unread waits for its own, and no other waits for it', async (t) => {
  const stack = await useFileStack(t, { api: { maxDownloads: 4 } });
  const [largeLink, smallLink] = [await stack.keep(large), await stack.keep(Buffer.from('small'))];
  const unread = [await open(t, largeLink, home), await open(t, largeLink, home)];
  let isThirdRead = false;
  const third = read(t, smallLink, home).then((bytes) => {
    isThirdRead = true;
    return bytes.toString();
  });
  t.is((await read(t, smallLink, away)).toString(), 'small');
  t.false(isThirdRead);
  unread[0]!.destroy();
  t.is(await third, 'small');
});

test('a download that nobody reads is cut, and one that waits for its place is served', async (t) => {
  const stack = await useFileStack(t, { api: { maxDownloads: 2, maxStallMs: 500 } });
  const [largeLink, smallLink] = [await stack.keep(large), await stack.keep(Buffer.from('small'))];
  const unread = await open(t, largeLink, home);
  t.is((await read(t, smallLink, home)).toString(), 'small');
  await t.throwsAsync(async () => void (await buffer(unread)));
});

test('a file of any length arrives whole, with its headers, and HEAD tells its length', async (t) => {
  const stack = await useFileStack(t, {});
  const range = 512 * 1024;
  for (const length of [1, range - 1, range, range + 1, 3 * range]) {
    const bytes = large.subarray(0, length);
    const link = await stack.keep(bytes);
    const response = await open(t, link, home);
    t.like(response.headers, {
      'content-type': 'image/png',
      'content-length': String(length),
      'x-content-type-options': 'nosniff',
      'cache-control': 'private, max-age=3600, must-revalidate',
    });
    t.true((await buffer(response)).equals(bytes));
    const head = request(link, { method: 'HEAD', agent: false }).end();
    const [told] = (await once(head, 'response')) as [IncomingMessage];
    t.is(told.statusCode, 200);
    t.is(told.headers['content-length'], String(length));
    t.is((await buffer(told)).length, 0);
  }
});

test('a file that is gone before its last range is an answer that breaks off', async (t) => {
  const stack = await useFileStack(t, {});
  const link = await stack.keep(large);
  const download = await open(t, link, home);
  const objects = new ObjectStore(stack.config.s3);
  t.teardown(() => objects.close());
  await objects.delete(link.slice(stack.url.length + 1));
  await t.throwsAsync(async () => void (await buffer(download)));
  t.is((await open(t, link, home)).statusCode, 404);
});
