import { request } from 'node:http';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import test from 'ava';
import { publishInvalidation } from '../../shared/platform/redis/invalidation-channel.ts';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import { startStack, type TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

/**
 * Public pages are prepared once with an ETag, compressed on request, and not sent again to clients that have them.
 */

let stack: TestStack;

test.before(async () => {
  // A statistics step so long that no test sees its end.
  stack = await startStack({ workers: [], api: { statsStepMs: 1_000 * 365 * 86_400_000 } });
});
test.after.always(() => stack?.close());

interface RawResult {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly bytes: Buffer;
}

/** Returns the raw response. `fetch` would request compression and decompress the body by itself. */
async function get(path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<RawResult> {
  return await new Promise((resolve, reject) => {
    const call = request(`${stack.url}${path}`, { method, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () =>
        resolve({
          status: response.statusCode!,
          headers: response.headers,
          bytes: Buffer.concat(chunks),
        }),
      );
    });
    call.on('error', reject);
    call.end();
  });
}

const decoders = { br: brotliDecompressSync, gzip: gunzipSync };
const etagPattern = /^"[A-Za-z0-9_-]+"$/;
const large = ['/docs', '/v1/openapi.json', '/v1/models'];
const small = ['/v1/logs/summary', '/v1/servers', '/v1/models/status', '/v1/models/demo-echo'];

for (const path of [...large, ...small]) {
  test(`${path} has a strong ETag, and is a 304 for a client that sends this ETag`, async (t) => {
    const whole = await get(path);
    const etag = String(whole.headers['etag']);
    t.is(whole.status, 200);
    t.regex(etag, etagPattern);
    t.is(Number(whole.headers['content-length']), whole.bytes.length);
    for (const condition of [etag, `"other", W/${etag}`, '*']) {
      const response = await get(path, { 'if-none-match': condition });
      t.is(response.status, 304, condition);
      t.is(response.bytes.length, 0);
      for (const name of ['etag', 'vary']) t.is(response.headers[name], whole.headers[name]);
      t.truthy(response.headers['cache-control']);
    }
    const changed = await get(path, { 'if-none-match': '"other"' });
    t.is(changed.status, 200);
    t.true(changed.bytes.equals(whole.bytes));
  });

  test(`a HEAD of ${path} has the headers of its GET, and no body`, async (t) => {
    const [head, whole] = [await get(path, {}, 'HEAD'), await get(path)];
    t.is(head.status, 200);
    t.is(head.bytes.length, 0);
    for (const name of ['etag', 'content-type', 'content-length', 'vary'])
      t.is(head.headers[name], whole.headers[name], name);
    t.is((await get(path, { 'if-none-match': String(whole.headers['etag']) }, 'HEAD')).status, 304);
  });
}

for (const path of large) {
  test(`${path} is compressed on request, with its own ETag`, async (t) => {
    const plain = await get(path);
    t.is(plain.headers['content-encoding'], undefined);
    const vary = path === '/docs' ? 'cookie, accept-language, accept-encoding' : 'accept-encoding';
    t.is(plain.headers['vary'], vary);
    for (const [accept, coding] of [
      ['gzip, deflate, br', 'br'],
      ['gzip;q=1.0, br;q=0', 'gzip'],
      ['gzip', 'gzip'],
    ] as const) {
      const response = await get(path, { 'accept-encoding': accept });
      t.is(response.headers['content-encoding'], coding, accept);
      t.is(response.headers['vary'], vary);
      t.regex(String(response.headers['etag']), etagPattern);
      t.not(response.headers['etag'], plain.headers['etag']);
      t.true(response.bytes.length < plain.bytes.length / 2);
      t.true(decoders[coding](response.bytes).equals(plain.bytes));
      const conditionalHeaders = {
        'accept-encoding': accept,
        'if-none-match': String(response.headers['etag']),
      };
      t.is((await get(path, conditionalHeaders)).status, 304);
    }
    for (const accept of ['identity', 'deflate', 'br;q=0, gzip;q=0'])
      t.true((await get(path, { 'accept-encoding': accept })).bytes.equals(plain.bytes), accept);
  });
}

test('a body that fits into one packet is not compressed', async (t) => {
  for (const path of small.slice(0, 2)) {
    const response = await get(path, { 'accept-encoding': 'br' });
    t.is(response.headers['content-encoding'], undefined, path);
    t.is(response.headers['vary'], undefined, path);
  }
});

// Serial, because it changes what the other tests read.
test.serial('disabling a model changes the pages that contain it, and their ETags', async (t) => {
  const paths = ['/v1/models', '/v1/models?type=chat', '/v1/models/status', '/v1/models/demo-echo'];
  const untouched = ['/v1/models?type=embedding', '/v1/servers'];
  const readEtags = async (list: readonly string[]) =>
    await Promise.all(list.map(async (path) => (await get(path)).headers['etag']));
  const before = await readEtags(paths);
  const untouchedBefore = await readEtags(untouched);
  await stack.redis.sadd(redisKeys.disabledModels, 'demo-echo');
  await publishInvalidation(stack.redis, { kind: 'models' });
  await waitFor(
    'the model to be disabled',
    async () => (await get('/v1/models/demo-echo')).headers['etag'] !== before[3],
  );
  const off = await readEtags(paths);
  for (const [i, path] of paths.entries()) t.not(off[i], before[i], path);
  t.deepEqual(await readEtags(untouched), untouchedBefore);
  await stack.redis.srem(redisKeys.disabledModels, 'demo-echo');
  await publishInvalidation(stack.redis, { kind: 'models' });
  await waitFor(
    'the model to be enabled again',
    async () => (await get('/v1/models/demo-echo')).headers['etag'] === before[3],
  );
  t.deepEqual(await readEtags(paths), before);
});

test('caches must revalidate pages that may change at any second, and may store others for five minutes', async (t) => {
  t.is((await get('/v1/models')).headers['cache-control'], 'public, no-cache');
  t.is((await get('/v1/health')).headers['cache-control'], 'no-store');
  t.regex(String((await get('/v1/models/status')).headers['cache-control']), /^public, max-age=\d+$/);
  t.is((await get('/docs')).headers['cache-control'], 'no-cache');
  for (const path of ['/v1/openapi.json', '/v1/servers'])
    t.is((await get(path)).headers['cache-control'], 'public, max-age=300');
});
