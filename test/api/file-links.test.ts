import { createHash, randomBytes } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import { createFileKey, fileLifetimeMs } from '../../shared/platform/storage/file-name.ts';
import { ObjectStore } from '../../shared/platform/storage/object-store.ts';
import { DescriptionChecker } from '../support/description-checker.ts';
import type { Description } from '../../api/description/description.ts';
import { startStack, type TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** Links to images, as browsers, download managers and caches use them. */

let stack: TestStack;
let objects: ObjectStore;
let checker: DescriptionChecker;
/** Larger than three ranges of the object store. */
const bytes = randomBytes(1_700_000);
let link: string;

test.before(async () => {
  stack = await startStack({ env: { CORS_ORIGINS: '*' }, workers: [] });
  objects = new ObjectStore(stack.config.s3);
  await objects.prepareBucket();
  const response = await fetch(`${stack.url}/v1/openapi.json`);
  checker = new DescriptionChecker((await response.json()) as Description);
  link = await store(createFileKey('image/png'));
});
test.after.always(async () => {
  objects?.close();
  await stack?.close();
});

async function store(key: string, content: Buffer = bytes): Promise<string> {
  await objects.put(key, content, 'image/png');
  return `${stack.url}/files/${key.slice(key.lastIndexOf('/') + 1)}`;
}

const fetchLink = (headers: Record<string, string> = {}, method = 'GET', url = link): Promise<Response> =>
  fetch(url, { method, headers });

const read = async (response: Response): Promise<Buffer> => Buffer.from(await response.arrayBuffer());

/** Checks the headers that are the same for the whole file, a range of it, HEAD and 304. */
function checkHeaders(t: ExecutionContext, { headers }: Response): void {
  t.is(headers.get('accept-ranges'), 'bytes');
  t.regex(headers.get('etag') ?? '', /^"[\w-]{22}"$/);
  t.true(Math.abs(Date.parse(headers.get('last-modified') ?? '') - Date.now()) < 600_000);
  t.regex(headers.get('content-disposition') ?? '', /^inline; filename="image-[\w-]{8}\.png"$/);
  t.regex(headers.get('cache-control') ?? '', /^private, max-age=\d+, must-revalidate$/);
  t.is(headers.get('x-content-type-options'), 'nosniff');
  t.regex(headers.get('content-security-policy') ?? '', /^sandbox; default-src 'none'; /);
}

test('a link serves the whole file, and HEAD returns the same headers without it', async (t) => {
  const whole = await fetchLink();
  t.is(whole.status, 200);
  checkHeaders(t, whole);
  t.is(whole.headers.get('content-type'), 'image/png');
  t.true((await read(whole)).equals(bytes));
  // A range is ignored for HEAD.
  const head = await fetchLink({ range: 'bytes=0-9' }, 'HEAD');
  t.is(head.status, 200);
  checkHeaders(t, head);
  t.is(head.headers.get('content-length'), String(bytes.length));
  t.is(head.headers.get('content-type'), 'image/png');
  t.is(head.headers.get('etag'), whole.headers.get('etag'));
});

test('a single range is a 206 with exactly the requested bytes', async (t) => {
  const size = bytes.length;
  const ranges: readonly [string, number, number][] = [
    ['bytes=0-0', 0, 1],
    ['bytes=100-1099999', 100, 1_100_000],
    ['bytes=1600000-', 1_600_000, size],
    ['bytes=1699999-9999999', size - 1, size],
    ['bytes=-10', size - 10, size],
    ['bytes=-9999999', 0, size],
  ];
  for (const [range, from, end] of ranges) {
    const response = await fetchLink({ range });
    t.is(response.status, 206, range);
    checkHeaders(t, response);
    t.is(response.headers.get('content-range'), `bytes ${from}-${end - 1}/${size}`);
    t.is(response.headers.get('content-length'), String(end - from));
    t.deepEqual(await checker.findFaults('/files/{name}', 'get', response.clone()), []);
    t.true((await read(response)).equals(bytes.subarray(from, end)), range);
  }
});

test('several ranges or an invalid range return the whole file', async (t) => {
  for (const range of ['bytes=0-1,5-6', 'bytes=9-1', 'pages=1-2']) {
    const response = await fetchLink({ range });
    t.is(response.status, 200, range);
    t.false(response.headers.has('content-range'));
    t.is((await read(response)).length, bytes.length);
  }
});

test('a range beyond the end is a 416 with the length', async (t) => {
  for (const range of [`bytes=${bytes.length}-`, 'bytes=-0', 'bytes=99999999999999999999-']) {
    const response = await fetchLink({ range });
    t.is(response.status, 416, range);
    t.is(response.headers.get('content-range'), `bytes */${bytes.length}`);
    t.is(response.headers.get('cache-control'), 'no-store');
    t.deepEqual(await checker.findFaults('/files/{name}', 'get', response), []);
  }
});

test('a client that already has the file gets a 304, and one that expects another version gets a 412', async (t) => {
  const first = await fetchLink({}, 'HEAD');
  const etag = first.headers.get('etag')!;
  const lastModified = first.headers.get('last-modified')!;
  const unchanged = [
    { 'if-none-match': etag },
    { 'if-none-match': `"x", W/${etag}`, range: 'bytes=0-1' },
    { 'if-modified-since': lastModified },
  ];
  for (const headers of unchanged) {
    for (const method of ['GET', 'HEAD']) {
      const response = await fetchLink(headers, method);
      t.is(response.status, 304, JSON.stringify(headers));
      checkHeaders(t, response);
      t.false(response.headers.has('content-range'));
      t.deepEqual(await checker.findFaults('/files/{name}', 'get', response), []);
    }
  }
  const failed = await fetchLink({ 'if-match': '"x"' });
  t.is(failed.status, 412);
  t.deepEqual(await checker.findFaults('/files/{name}', 'get', failed), []);
  const changed = await fetchLink({ 'if-none-match': '"x"', 'if-match': etag });
  t.is(changed.status, 200);
  await changed.arrayBuffer();
});

test('a download resumes if the file is unchanged, and otherwise starts over', async (t) => {
  const { headers } = await fetchLink({}, 'HEAD');
  for (const validator of [headers.get('etag')!, headers.get('last-modified')!]) {
    const remainder = await fetchLink({ range: 'bytes=1699990-', 'if-range': validator });
    t.is(remainder.status, 206);
    t.true((await read(remainder)).equals(bytes.subarray(1_699_990)));
  }
  for (const validator of [`W/${headers.get('etag')}`, '"x"', 'Mon, 23 Nov 2020 12:00:00 GMT']) {
    const whole = await fetchLink({ range: 'bytes=1699990-', 'if-range': validator });
    t.is(whole.status, 200);
    t.is((await read(whole)).length, bytes.length);
  }
});

test('a link expires after 24 hours, and caches may not store the file any longer', async (t) => {
  const aged = (ageMs: number): Promise<string> =>
    store(createFileKey('image/png', Date.now() - ageMs), Buffer.from('a picture'));
  const old = await aged(fileLifetimeMs - 100_000);
  const response = await fetchLink({}, 'GET', old);
  t.is((await read(response)).toString(), 'a picture');
  const maxAge = Number(/max-age=(\d+)/.exec(response.headers.get('cache-control') ?? '')?.[1]);
  t.true(maxAge > 0 && maxAge <= 100, String(maxAge));
  const expired = await aged(fileLifetimeMs);
  const validators = {
    'if-none-match': `"${createHash('sha256').update(expired).digest('base64url')}", *`,
  };
  for (const [headers, method] of [
    [{}, 'GET'],
    [{}, 'HEAD'],
    [{ range: 'bytes=0-1' }, 'GET'],
    [validators, 'GET'],
  ] as const) {
    const notFound = await fetchLink(headers, method, expired);
    t.is(notFound.status, 404);
    t.is(notFound.headers.get('cache-control'), 'no-store');
    await notFound.arrayBuffer();
  }
});

test('an unknown name is a 404, regardless of the headers', async (t) => {
  const unknownLink = `${stack.url}/${createFileKey('image/png')}`;
  for (const headers of [{}, { range: 'bytes=5-' }, { range: 'bytes=-5' }, { 'if-none-match': '*' }]) {
    const response = await fetchLink(headers, 'GET', unknownLink);
    t.is(response.status, 404, JSON.stringify(headers));
    await response.arrayBuffer();
  }
});

test('a link in the former format still works for 24 hours', async (t) => {
  const former = await store(`${randomBytes(32).toString('base64url')}.png`);
  const response = await fetchLink({ range: 'bytes=-10' }, 'GET', former);
  t.is(response.status, 206);
  checkHeaders(t, response);
  t.true((await read(response)).equals(bytes.subarray(-10)));
});

test('a worker deletes expired images, and no others', async (t) => {
  const expired = createFileKey('image/png', Date.now() - fileLifetimeMs);
  await store(expired, Buffer.from('a picture'));
  await stack.startWorker();
  const { signal } = new AbortController();
  await waitFor(
    'the deletion',
    async () => !(await objects.list('files/', 1_000, '', signal)).includes(expired),
  );
  const fresh = await fetchLink({}, 'HEAD');
  t.is(fresh.status, 200);
});

test('a page of another origin may read a range of a file, and the headers that describe it', async (t) => {
  const response = await fetchLink({ origin: 'https://app.example', range: 'bytes=0-1' });
  t.is(response.status, 206);
  t.is(response.headers.get('access-control-allow-origin'), '*');
  const exposed = response.headers.get('access-control-expose-headers')?.split(',') ?? [];
  for (const name of ['content-range', 'accept-ranges', 'content-disposition', 'etag'])
    t.true(exposed.includes(name), name);
  await response.arrayBuffer();
});
