import { once } from 'node:events';
import { randomBytes } from 'node:crypto';
import { get, request, type IncomingMessage } from 'node:http';
import { buffer } from 'node:stream/consumers';
import test, { type ExecutionContext } from 'ava';
import { createFileKey } from '../../shared/platform/storage/file-name.ts';
import { ObjectStore } from '../../shared/platform/storage/object-store.ts';
import { useStack, type StackOptions, type TestStack } from '../support/stack.ts';

/** Unread downloads of one client do not affect others. Links to files need no key. */

interface FileStack extends TestStack {
  /** Stores a file as a worker does. @returns its link */
  readonly store: (bytes: Buffer) => Promise<string>;
}

async function useFileStack(t: ExecutionContext, options: StackOptions): Promise<FileStack> {
  const stack = await useStack(t, { env: { TRUST_PROXY: 'on' }, workers: [], ...options });
  const objects = new ObjectStore(stack.config.s3);
  t.teardown(() => objects.close());
  await objects.prepareBucket();
  const store = async (bytes: Buffer): Promise<string> => {
    const key = createFileKey('image/png');
    await objects.put(key, bytes, 'image/png');
    return `${stack.url}/${key}`;
  };
  return { ...stack, store };
}

/**
 * Requests a file over a new connection, and resolves with the start of the response. The body is not read yet.
 */
async function open(t: ExecutionContext, link: string, address: string): Promise<IncomingMessage> {
  const download = get(link, { agent: false, headers: { 'x-forwarded-for': address } });
  t.teardown(() => download.destroy());
  const [response] = (await once(download, 'response')) as [IncomingMessage];
  // Downloads that are closed before they are read emit an error: the response, or the request if the connection is
  // reset.
  for (const emitter of [download, response]) emitter.on('error', () => undefined);
  return response;
}

const read = async (t: ExecutionContext, link: string, address: string): Promise<Buffer> =>
  await buffer(await open(t, link, address));

/** More than fits in the socket buffers of both sides. */
const large = randomBytes(20_000_000);
const [home, away] = ['192.0.2.1', '198.51.100.7'];

test('unread downloads do not use object store connections, and are complete when they are read later', async (t) => {
  const stack = await useFileStack(t, {});
  const small = randomBytes(1_000);
  const [largeLink, smallLink] = [await stack.store(large), await stack.store(small)];
  const downloads = await Promise.all(Array.from({ length: 60 }, () => open(t, largeLink, home)));
  t.deepEqual([...new Set(downloads.map(({ statusCode }) => statusCode))], [200]);
  // From the same address, and from another.
  t.true((await read(t, smallLink, home)).equals(small));
  t.true((await read(t, smallLink, away)).equals(small));
  const health = (await (await fetch(`${stack.url}/v1/health`)).json()) as { checks: { s3: string } };
  t.is(health.checks.s3, 'ok');
  t.true((await buffer(downloads[0]!)).equals(large));
  t.true((await buffer(downloads[59]!)).equals(large));
});

test('if an address has used its share of download slots, its next download waits, but those of other addresses do not', async (t) => {
  const stack = await useFileStack(t, { api: { maxDownloads: 4 } });
  const [largeLink, smallLink] = [await stack.store(large), await stack.store(Buffer.from('small'))];
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

test('an unread download is aborted, and then a waiting one is served', async (t) => {
  const stack = await useFileStack(t, { api: { maxDownloads: 2, maxStallMs: 500 } });
  const [largeLink, smallLink] = [await stack.store(large), await stack.store(Buffer.from('small'))];
  const unread = await open(t, largeLink, home);
  t.is((await read(t, smallLink, home)).toString(), 'small');
  await t.throwsAsync(async () => void (await buffer(unread)));
});

test('a file of any length arrives complete with its headers, and HEAD returns its length', async (t) => {
  const stack = await useFileStack(t, {});
  const range = 512 * 1024;
  for (const length of [1, range - 1, range, range + 1, 3 * range]) {
    const bytes = large.subarray(0, length);
    const link = await stack.store(bytes);
    const response = await open(t, link, home);
    t.like(response.headers, {
      'content-type': 'image/png',
      'content-length': String(length),
      'x-content-type-options': 'nosniff',
      'cache-control': 'private, max-age=3600, must-revalidate',
    });
    t.true((await buffer(response)).equals(bytes));
    const head = request(link, { method: 'HEAD', agent: false }).end();
    const [headResponse] = (await once(head, 'response')) as [IncomingMessage];
    t.is(headResponse.statusCode, 200);
    t.is(headResponse.headers['content-length'], String(length));
    t.is((await buffer(headResponse)).length, 0);
  }
});

test('if a file is deleted before its last range is read, the download breaks off', async (t) => {
  const stack = await useFileStack(t, {});
  const link = await stack.store(large);
  const download = await open(t, link, home);
  const objects = new ObjectStore(stack.config.s3);
  t.teardown(() => objects.close());
  await objects.delete(link.slice(stack.url.length + 1));
  await t.throwsAsync(async () => void (await buffer(download)));
  t.is((await open(t, link, home)).statusCode, 404);
});
