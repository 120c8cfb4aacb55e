import { createHash, randomBytes } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import { createFileKey, fileLifetimeMs } from '../../shared/storage/file-name.ts';
import { ObjectStore } from '../../shared/storage/object-store.ts';
import { DescriptionChecker } from '../support/description-checker.ts';
import type { Description } from '../../shared/contract/openapi/description.ts';
import { startStack, type TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** Links to images, as browsers, download managers and caches use them. */

let stack: TestStack;
let objects: ObjectStore;
let checker: DescriptionChecker;
/** More than three ranges of the store. */
const bytes = randomBytes(1_700_000);
let link: string;

test.before(async () => {
  stack = await startStack({ env: { CORS_ORIGINS: '*' }, workers: [] });
  objects = new ObjectStore(stack.config.s3);
  await objects.prepareBucket();
  const description = await fetch(`${stack.url}/v1/openapi.json`);
  checker = new DescriptionChecker((await description.json()) as Description);
  link = await keep(createFileKey('image/png'));
});
test.after.always(async () => {
  objects?.close();
  await stack?.close();
});

async function keep(key: string, content: Buffer = bytes): Promise<string> {
  await objects.put(key, content, 'image/png');
  return `${stack.url}/files/${key.slice(key.lastIndexOf('/') + 1)}`;
}

const ask = (headers: Record<string, string> = {}, method = 'GET', url = link): Promise<Response> =>
  fetch(url, { method, headers });

const read = async (answer: Response): Promise<Buffer> => Buffer.from(await answer.arrayBuffer());

/** What the answer is told by: the same for the whole file, a part of it, HEAD and 304. */
function checkHeaders(t: ExecutionContext, { headers }: Response): void {
  t.is(headers.get('accept-ranges'), 'bytes');
  t.regex(headers.get('etag') ?? '', /^"[\w-]{22}"$/);
  t.true(Math.abs(Date.parse(headers.get('last-modified') ?? '') - Date.now()) < 600_000);
  t.regex(headers.get('content-disposition') ?? '', /^inline; filename="image-[\w-]{8}\.png"$/);
  t.regex(headers.get('cache-control') ?? '', /^private, max-age=\d+, must-revalidate$/);
  t.is(headers.get('x-content-type-options'), 'nosniff');
  t.is(headers.get('content-security-policy'), "default-src 'none'");
}

test('a link serves the whole file, and HEAD says the same without it', async (t) => {
  const whole = await ask();
  t.is(whole.status, 200);
  checkHeaders(t, whole);
  t.is(whole.headers.get('content-type'), 'image/png');
  t.true((await read(whole)).equals(bytes));
  // Of HEAD a range is not asked for.
  const head = await ask({ range: 'bytes=0-9' }, 'HEAD');
  t.is(head.status, 200);
  checkHeaders(t, head);
  t.is(head.headers.get('content-length'), String(bytes.length));
  t.is(head.headers.get('content-type'), 'image/png');
  t.is(head.headers.get('etag'), whole.headers.get('etag'));
});

test('one range is a 206 of exactly these bytes', async (t) => {
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
    const answer = await ask({ range });
    t.is(answer.status, 206, range);
    checkHeaders(t, answer);
    t.is(answer.headers.get('content-range'), `bytes ${from}-${end - 1}/${size}`);
    t.is(answer.headers.get('content-length'), String(end - from));
    t.deepEqual(await checker.findFaults('/files/{name}', 'get', answer.clone()), []);
    t.true((await read(answer)).equals(bytes.subarray(from, end)), range);
  }
});

test('several ranges, and what is no range, are answered by the whole file', async (t) => {
  for (const range of ['bytes=0-1,5-6', 'bytes=9-1', 'pages=1-2']) {
    const answer = await ask({ range });
    t.is(answer.status, 200, range);
    t.false(answer.headers.has('content-range'));
    t.is((await read(answer)).length, bytes.length);
  }
});

test('a range behind the end is a 416 that tells the length', async (t) => {
  for (const range of [`bytes=${bytes.length}-`, 'bytes=-0', 'bytes=99999999999999999999-']) {
    const answer = await ask({ range });
    t.is(answer.status, 416, range);
    t.is(answer.headers.get('content-range'), `bytes */${bytes.length}`);
    t.is(answer.headers.get('cache-control'), 'no-store');
    t.deepEqual(await checker.findFaults('/files/{name}', 'get', answer), []);
  }
});

test('a caller who has the file is told so by a 304, and one who asks for another version by a 412', async (t) => {
  const first = await ask({}, 'HEAD');
  const etag = first.headers.get('etag')!;
  const lastModified = first.headers.get('last-modified')!;
  const unchanged = [
    { 'if-none-match': etag },
    { 'if-none-match': `"x", W/${etag}`, range: 'bytes=0-1' },
    { 'if-modified-since': lastModified },
  ];
  for (const headers of unchanged) {
    for (const method of ['GET', 'HEAD']) {
      const answer = await ask(headers, method);
      t.is(answer.status, 304, JSON.stringify(headers));
      checkHeaders(t, answer);
      t.false(answer.headers.has('content-range'));
      t.deepEqual(await checker.findFaults('/files/{name}', 'get', answer), []);
    }
  }
  const failed = await ask({ 'if-match': '"x"' });
  t.is(failed.status, 412);
  t.deepEqual(await checker.findFaults('/files/{name}', 'get', failed), []);
  const changed = await ask({ 'if-none-match': '"x"', 'if-match': etag });
  t.is(changed.status, 200);
  await changed.arrayBuffer();
});

test('a download goes on where it was cut if the file is still the same, else it begins anew', async (t) => {
  const { headers } = await ask({}, 'HEAD');
  for (const validator of [headers.get('etag')!, headers.get('last-modified')!]) {
    const rest = await ask({ range: 'bytes=1699990-', 'if-range': validator });
    t.is(rest.status, 206);
    t.true((await read(rest)).equals(bytes.subarray(1_699_990)));
  }
  for (const validator of [`W/${headers.get('etag')}`, '"x"', 'Mon, 23 Nov 2020 12:00:00 GMT']) {
    const whole = await ask({ range: 'bytes=1699990-', 'if-range': validator });
    t.is(whole.status, 200);
    t.is((await read(whole)).length, bytes.length);
  }
});

test('a link ends with its 24 hours, and no cache keeps it for longer', async (t) => {
  const aged = (ageMs: number): Promise<string> =>
    keep(createFileKey('image/png', Date.now() - ageMs), Buffer.from('a picture'));
  const old = await aged(fileLifetimeMs - 100_000);
  const answer = await ask({}, 'GET', old);
  t.is((await read(answer)).toString(), 'a picture');
  const maxAge = Number(/max-age=(\d+)/.exec(answer.headers.get('cache-control') ?? '')?.[1]);
  t.true(maxAge > 0 && maxAge <= 100, String(maxAge));
  const gone = await aged(fileLifetimeMs);
  const validators = { 'if-none-match': `"${createHash('sha256').update(gone).digest('base64url')}", *` };
  for (const [headers, method] of [
    [{}, 'GET'],
    [{}, 'HEAD'],
    [{ range: 'bytes=0-1' }, 'GET'],
    [validators, 'GET'],
  ] as const) {
    const refused = await ask(headers, method, gone);
    t.is(refused.status, 404);
    t.is(refused.headers.get('cache-control'), 'no-store');
    await refused.arrayBuffer();
  }
});

test('a name that nothing is kept under is a 404, whatever it is asked for', async (t) => {
  const none = `${stack.url}/${createFileKey('image/png')}`;
  for (const headers of [{}, { range: 'bytes=5-' }, { range: 'bytes=-5' }, { 'if-none-match': '*' }]) {
    const answer = await ask(headers, 'GET', none);
    t.is(answer.status, 404, JSON.stringify(headers));
    await answer.arrayBuffer();
  }
});

test('a link of the former kind works until its 24 hours are over', async (t) => {
  const former = await keep(`${randomBytes(32).toString('base64url')}.png`);
  const answer = await ask({ range: 'bytes=-10' }, 'GET', former);
  t.is(answer.status, 206);
  checkHeaders(t, answer);
  t.true((await read(answer)).equals(bytes.subarray(-10)));
});

test('a worker deletes the images whose day is over, and no others', async (t) => {
  const due = createFileKey('image/png', Date.now() - fileLifetimeMs);
  await keep(due, Buffer.from('a picture'));
  await stack.startWorker();
  const { signal } = new AbortController();
  await waitFor('the deletion', async () => !(await objects.list('files/', 1_000, '', signal)).includes(due));
  const young = await ask({}, 'HEAD');
  t.is(young.status, 200);
});

test('a page of another origin may read a part of a file and where it lies', async (t) => {
  const answer = await ask({ origin: 'https://app.example', range: 'bytes=0-1' });
  t.is(answer.status, 206);
  t.is(answer.headers.get('access-control-allow-origin'), '*');
  const exposed = answer.headers.get('access-control-expose-headers')?.split(',') ?? [];
  for (const name of ['content-range', 'accept-ranges', 'content-disposition', 'etag'])
    t.true(exposed.includes(name), name);
  await answer.arrayBuffer();
});
