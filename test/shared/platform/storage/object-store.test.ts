import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, request as sendHttp } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  CreateBucketCommand,
  GetBucketLifecycleConfigurationCommand,
  HeadObjectCommand,
  PutBucketLifecycleConfigurationCommand,
  S3Client,
  type LifecycleRule,
} from '@aws-sdk/client-s3';
import test, { type ExecutionContext } from 'ava';
import type { Config } from '../../../../shared/platform/config/config.ts';
import { createFileKey } from '../../../../shared/platform/storage/file-name.ts';
import { ObjectStore } from '../../../../shared/platform/storage/object-store.ts';
import { useObjects } from '../../../support/stored-responses.ts';
import { startTcpProxy } from '../../../support/tcp-proxy.ts';

const { signal } = new AbortController();

function createClient(t: ExecutionContext, config: Config['s3']): S3Client {
  const client = new S3Client({ ...config, credentials: config, forcePathStyle: true });
  t.teardown(() => client.destroy());
  return client;
}

const rule = (id: string, prefix: string, days: number): LifecycleRule => ({
  ID: id,
  Status: 'Enabled',
  Filter: { Prefix: prefix },
  Expiration: { Days: days },
});

test('the rules of others stay in the bucket, and ours are corrected and added again', async (t) => {
  const { objects, config } = await useObjects(t);
  const client = createClient(t, config);
  const Bucket = config.bucket;
  const readRules = async (): Promise<unknown[]> => {
    const { Rules = [] } = await client.send(new GetBucketLifecycleConfigurationCommand({ Bucket }));
    return Rules.map(({ ID, Filter, Expiration }) => [ID, Filter?.Prefix ?? '', Expiration?.Days]);
  };
  const files = ['model-gateway-files', 'files/', 1];
  const answers = ['model-gateway-answers', 'answers/', 1];
  const batchFiles = ['model-gateway-batch-files', 'batch-files/', 31];
  t.deepEqual(await readRules(), [files, answers, batchFiles]);

  const Rules = [rule('reports', 'reports/', 365), rule('model-gateway-files', 'files/', 7)];
  const LifecycleConfiguration = { Rules };
  await client.send(new PutBucketLifecycleConfigurationCommand({ Bucket, LifecycleConfiguration }));
  await objects.prepareBucket();
  t.deepEqual(await readRules(), [['reports', 'reports/', 365], files, answers, batchFiles]);
});

test('within a host, large bodies are left out of the signature, and small ones are not', async (t) => {
  const hashes: unknown[] = [];
  const server = createServer((request, response) => {
    hashes.push(request.headers['x-amz-content-sha256']);
    request.resume().on('end', () => response.end());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const { config } = await useObjects(t);
  const store = new ObjectStore({ ...config, endpoint: `http://127.0.0.1:${port}` });
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
    store.close();
  });
  const large = Buffer.alloc(200_000);
  await store.put('small', Buffer.from('text'), 'text/plain');
  await store.put('large', large, 'text/plain');
  t.deepEqual(hashes, [createHash('sha256').update('text').digest('hex'), 'UNSIGNED-PAYLOAD']);
});

test('the rules of an existing bucket are not changed unless S3_MANAGE_BUCKET is on', async (t) => {
  const { config } = await useObjects(t);
  const client = createClient(t, config);
  const Bucket = 'theirs';
  const open = (manageBucket: Config['s3']['manageBucket'], bucket = Bucket): ObjectStore => {
    const store = new ObjectStore({ ...config, bucket, manageBucket });
    t.teardown(() => store.close());
    return store;
  };
  const countRules = async (bucket: string): Promise<number> => {
    const command = new GetBucketLifecycleConfigurationCommand({ Bucket: bucket });
    // S3 returns 404 for a bucket without rules.
    const { Rules = [] } = await client.send(command).catch(() => ({ Rules: [] }));
    return Rules.length;
  };
  await client.send(new CreateBucketCommand({ Bucket }));
  t.false(await open('auto').prepareBucket());
  t.false(await open('off').prepareBucket());
  t.is(await countRules(Bucket), 0);
  t.true(await open('on').prepareBucket());
  t.is(await countRules(Bucket), 3);
  // Once a bucket has our rules, `auto` updates them, too, because they may change with a release.
  t.true(await open('auto').prepareBucket());

  t.false(await open('off', 'made-by-us').prepareBucket());
  t.is(await countRules('made-by-us'), 0);
  t.true(await open('auto', 'made-by-us-too').prepareBucket());
  t.is(await countRules('made-by-us-too'), 3);
});

test('a bucket with the rules of an earlier version is upgraded', async (t) => {
  const { objects, config } = await useObjects(t);
  const client = createClient(t, config);
  const Bucket = config.bucket;
  const Rules = [rule('model-gateway-files', 'files/', 1), rule('model-gateway-answers', 'answers/', 1)];
  const LifecycleConfiguration = { Rules };
  await client.send(new PutBucketLifecycleConfigurationCommand({ Bucket, LifecycleConfiguration }));
  const unmanaged = new ObjectStore({ ...config, manageBucket: 'off' });
  t.teardown(() => unmanaged.close());
  t.false(await unmanaged.prepareBucket());
  t.true(await objects.prepareBucket());
  t.true(await unmanaged.prepareBucket());
  const upgraded = await client.send(new GetBucketLifecycleConfigurationCommand({ Bucket }));
  t.deepEqual(upgraded.Rules?.slice(0, 2), Rules);
  t.like(upgraded.Rules?.[2], {
    Filter: { Prefix: 'batch-files/' },
    Expiration: { Days: 31 },
    AbortIncompleteMultipartUpload: { DaysAfterInitiation: 1 },
  });
});

test('if a store rejects a rule for uploads, the bucket gets the rules without it', async (t) => {
  const { config } = await useObjects(t);
  const { port } = new URL(config.endpoint);
  const bodies: string[] = [];
  // Forwards everything but rules for uploads to the store.
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const body = Buffer.concat(parts);
      if (request.url?.includes('lifecycle') === true && request.method === 'PUT') bodies.push(String(body));
      if (body.includes('AbortIncompleteMultipartUpload')) {
        response.writeHead(400, { 'content-type': 'application/xml' });
        response.end('<Error><Code>MalformedXML</Code></Error>');
        return;
      }
      const { method, url: path, headers } = request;
      const forwarded = sendHttp({ port, method, path, headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 500, answer.headers);
        answer.pipe(response);
      });
      forwarded.end(body);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const limited = new ObjectStore({ ...config, endpoint, bucket: 'limited' });
  t.teardown(() => limited.close());
  t.true(await limited.prepareBucket());
  t.is(bodies.length, 2);
  const unmanaged = new ObjectStore({ ...config, bucket: 'limited', manageBucket: 'off' });
  t.teardown(() => unmanaged.close());
  t.true(await unmanaged.prepareBucket(), 'all objects expire');
});

test('a store that does not support lifecycle rules or denies access to them is not treated as unavailable', async (t) => {
  let status = 501;
  const server = createServer((request, response) => {
    const isRulesRequest = request.url?.includes('lifecycle') === true;
    response.writeHead(isRulesRequest ? status : 200, { 'content-type': 'application/xml' });
    response.end(isRulesRequest ? '<Error><Code>NotImplemented</Code></Error>' : '');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  const config = {
    endpoint: `http://127.0.0.1:${port}`,
    region: 'us-east-1',
    bucket: 'bucket',
    publicUrl: null,
    accessKeyId: 'key',
    secretAccessKey: 'secret',
  };
  const prepare = async (manageBucket: Config['s3']['manageBucket']): Promise<boolean> => {
    const objects = new ObjectStore({ ...config, manageBucket });
    t.teardown(() => objects.close());
    return await objects.prepareBucket();
  };
  t.false(await prepare('on'));
  status = 403;
  t.false(await prepare('auto'));
  t.false(await prepare('off'));
  // With `on` the rules are required, so the failure is reported.
  await t.throwsAsync(prepare('on'));
  status = 503;
  await t.throwsAsync(prepare('auto'));
});

test('if the store accepts requests but does not respond, they fail; they succeed once it responds again', async (t) => {
  const { config } = await useObjects(t);
  const proxy = await startTcpProxy(Number(new URL(config.endpoint).port));
  t.teardown(() => proxy.close());
  const endpoint = `http://127.0.0.1:${proxy.port}`;
  const objects = new ObjectStore({ ...config, endpoint }, { attemptMs: 500, putMs: 30_000 });
  t.teardown(() => objects.close());
  const impatient = new ObjectStore({ ...config, endpoint }, { attemptMs: 10_000, putMs: 100 });
  t.teardown(() => impatient.close());
  const key = createFileKey('image/png');
  proxy.hold();
  const calls = [
    objects.put(key, Buffer.from('x'), 'image/png'),
    objects.delete(key),
    objects.prepareBucket(),
    impatient.put(key, Buffer.from('x'), 'image/png'),
  ];
  const names = await Promise.all(
    calls.map((call) =>
      call.then(
        () => 'none',
        (error: Error) => error.name,
      ),
    ),
  );
  t.deepEqual(names, ['TimeoutError', 'TimeoutError', 'TimeoutError', 'AbortError']);
  proxy.release();
  await objects.put(key, Buffer.from('x'), 'image/png');
  t.is((await objects.describe(key, signal))!.objectBytes, 1);
});

test('a direct link to the bucket sets a safe file name, and its response is not cached beyond the expiry', async (t) => {
  const { objects, config } = await useObjects(t);
  const client = createClient(t, config);
  const key = createFileKey('image/png', 1_000);
  await objects.put(key, Buffer.from('x'), 'image/png');
  const head = await client.send(new HeadObjectCommand({ Bucket: config.bucket, Key: key }));
  t.is(head.ContentType, 'image/png');
  t.regex(head.ContentDisposition ?? '', /^inline; filename="image-[\w-]{8}\.png"$/);
  t.is(head.ExpiresString, 'Fri, 02 Jan 1970 00:00:01 GMT');
});

test('a listing continues after the given key, and deleting objects works even if they do not exist', async (t) => {
  const { objects } = await useObjects(t);
  const keys = [1, 2, 3].map((atMs) => createFileKey('image/webp', atMs));
  for (const key of keys) await objects.put(key, Buffer.from('x'), 'image/webp');
  t.deepEqual(await objects.list('files/', 2, 'files/', signal), keys.slice(0, 2));
  t.deepEqual(await objects.list('files/', 2, keys[1]!, signal), keys.slice(2));
  t.deepEqual(await objects.deleteAll([keys[0]!, keys[2]!, 'files/none'], signal), []);
  t.deepEqual(await objects.list('files/', 10, 'files/', signal), [keys[1]]);
});
