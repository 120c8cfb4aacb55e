import { randomBytes } from 'node:crypto';
import { ListMultipartUploadsCommand, S3Client } from '@aws-sdk/client-s3';
import test, { type ExecutionContext } from 'ava';
import OpenAI, { toFile } from 'openai';
import { createApiFileKey } from '../../shared/platform/storage/file-name.ts';
import { ObjectStore } from '../../shared/platform/storage/object-store.ts';
import { redisKeys, shardOf } from '../../shared/platform/redis/redis-keys.ts';
import { createFileId } from '../../shared/work/files/file-id.ts';
import { FileStore } from '../../shared/work/files/file-store.ts';
import { runFileFunction } from '../support/file-functions.ts';
import { startStack, type TestAccount, type TestStack } from '../support/stack.ts';
import { startUpload } from '../support/uploads.ts';
import { waitFor } from '../support/wait-for.ts';

/** Has limits that are reached easily. */
const limits = {
  MAX_FILE_BYTES: '12000000',
  MAX_FILES_PER_ACCOUNT: '3',
  MAX_FILE_BYTES_PER_ACCOUNT: '20000000',
};
const { signal } = new AbortController();

let stack: TestStack;
let small: TestStack;
let objects: ObjectStore;
let s3: S3Client;

test.before(async () => {
  stack = await startStack({ holdsS3: true });
  small = await startStack({ env: limits, workers: [] });
  objects = new ObjectStore(stack.config.s3);
  await objects.prepareBucket();
  const { endpoint, region, accessKeyId, secretAccessKey } = stack.config.s3;
  const credentials = { accessKeyId, secretAccessKey };
  s3 = new S3Client({ endpoint, region, credentials, forcePathStyle: true });
  const smallObjects = new ObjectStore(small.config.s3);
  await smallObjects.prepareBucket();
  smallObjects.close();
});
test.after.always(async () => {
  objects?.close();
  s3?.destroy();
  await stack?.close();
  await small?.close();
});

const line = (id: number, body: object = { model: 'use-lite-en-512', input: `text ${id}` }): string =>
  JSON.stringify({ custom_id: `${id}`, method: 'POST', url: '/v1/embeddings', body });
const lines = (count: number): string => Array.from({ length: count }, (_, i) => `${line(i)}\n`).join('');

const clientOf = ({ apiKey }: TestAccount, { url } = stack): OpenAI =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 });

async function upload(
  client: OpenAI,
  content: string | Buffer = lines(3),
  name = 'requests.jsonl',
): Promise<OpenAI.FileObject> {
  return await client.files.create({ file: await toFile(Buffer.from(content), name), purpose: 'batch' });
}

/** Fetches a path with the key of an account. */
const call = (
  { apiKey }: TestAccount,
  path: string,
  { headers = {}, method = 'GET', url = stack.url } = {},
): Promise<Response> =>
  fetch(`${url}/v1/files${path}`, { method, headers: { authorization: `Bearer ${apiKey}`, ...headers } });

async function listObjects(): Promise<string[]> {
  return await objects.list('batch-files/', 1_000, 'batch-files/', signal);
}

/** Counts the multipart uploads that are not complete. */
async function countUploads(): Promise<number> {
  const { Uploads = [] } = await s3.send(new ListMultipartUploadsCommand({ Bucket: stack.config.s3.bucket }));
  return Uploads.length;
}

/** The error of a call that must fail. */
async function failure(
  t: ExecutionContext,
  work: Promise<unknown>,
): Promise<{ status: number; code: string; message: string }> {
  const error = await t.throwsAsync(work);
  return error as unknown as { status: number; code: string; message: string };
}

test('OpenAI’s client uploads, reads, lists and deletes a file, whose fields are OpenAI’s', async (t) => {
  const client = clientOf(await stack.createAccount());
  const content = lines(3);
  const file = await client.files.create({
    file: await toFile(Buffer.from(content), 'requests.jsonl'),
    purpose: 'batch',
    expires_after: { anchor: 'created_at', seconds: 7_200 },
  });
  t.deepEqual(file, {
    id: file.id,
    object: 'file',
    bytes: content.length,
    created_at: file.created_at,
    expires_at: file.created_at + 7_200,
    filename: 'requests.jsonl',
    purpose: 'batch',
    status: 'processed',
    status_details: null,
  } as unknown as OpenAI.FileObject);
  t.true(Math.abs(file.created_at - Date.now() / 1_000) < 600);
  t.deepEqual(await client.files.retrieve(file.id), file);
  t.deepEqual(await client.files.waitForProcessing(file.id), file);
  t.is(await (await client.files.content(file.id)).text(), content);
  t.deepEqual((await client.files.list()).data, [file]);
  t.deepEqual(await client.files.delete(file.id), { id: file.id, object: 'file', deleted: true });
  t.is((await failure(t, client.files.retrieve(file.id))).status, 404);
  t.is((await failure(t, client.files.content(file.id))).status, 404);
  t.deepEqual((await client.files.list()).data, []);
});

test('a file is kept for 30 days by default, and its object a day longer', async (t) => {
  const account = await stack.createAccount();
  const file = await upload(clientOf(account));
  t.is(file.expires_at, file.created_at + 2_592_000);
  const [segment] = (await new FileStore(stack.redis).findContent(account.id, file.id))!.segments;
  const dueMs = Number.parseInt(segment!.key.slice('batch-files/'.length).slice(0, 12), 16);
  t.true(dueMs / 1_000 >= file.expires_at! + 86_399 && dueMs / 1_000 < file.created_at + 31 * 86_400 + 60);
});

test('pages of OpenAI’s client have each file once, in both orders and by purpose', async (t) => {
  const account = await stack.createAccount();
  const client = clientOf(account);
  const ids: string[] = [];
  for (let i = 0; i < 5; i++) ids.push((await upload(client)).id);
  const output = createFileId(Date.now(), 86_400);
  await runFileFunction(stack.redis, account.id, 'createGrowingFile', output, 'out.jsonl', 'batch_output');
  const collect = async (query: OpenAI.FileListParams): Promise<string[]> => {
    const found: string[] = [];
    for await (const { id } of client.files.list(query)) found.push(id);
    return found;
  };
  t.deepEqual(await collect({ limit: 2, order: 'asc' }), [...ids, output]);
  t.deepEqual(await collect({ limit: 4 }), [output, ...ids.toReversed()]);
  t.deepEqual(await collect({ purpose: 'batch', limit: 3 }), ids.toReversed());
  t.deepEqual(await collect({ purpose: 'batch_output' }), [output]);
  const page = await (await call(account, '?limit=2')).json();
  t.like(page, { object: 'list', has_more: true, first_id: output, last_id: ids[4]! });
  for (const query of ['limit=0', 'limit=10001', 'order=up', 'after=file-1', 'purpose=vision'])
    t.is((await call(account, `?${query}`)).status, 422, query);
});

test('a file of another account, or one that never was, is a 404', async (t) => {
  const [ann, bob] = [await stack.createAccount(), await stack.createAccount()];
  const { id } = await upload(clientOf(ann));
  const unknown = createFileId(Date.now(), 3_600);
  for (const path of [id, unknown, 'file-1', 'none', `${id}x`]) {
    for (const [suffix, method] of [
      ['', 'GET'],
      ['/content', 'GET'],
      ['', 'DELETE'],
      ['/cost-estimate', 'GET'],
    ]) {
      const response = await call(bob, `/${path}${suffix}`, { method: method! });
      t.is(response.status, 404, `${method} ${path}${suffix}`);
      t.like(await response.json(), { error: { code: 'not_found' } });
    }
  }
  t.is((await call(ann, `/${id}`)).status, 200);
});

test('an expired file is gone at once, and its object when a worker has seen it', async (t) => {
  const account = await stack.createAccount();
  const id = createFileId(Date.now() - 3_600_000, 3_600);
  const key = createApiFileKey(Date.now() + 86_400_000);
  await objects.put(key, Buffer.from('{}'), 'application/jsonl');
  const bounds = { maxFiles: 10, maxBytes: 1_000 };
  const file = { id, name: 'a.jsonl', purpose: 'batch', key, byteLength: 2, verdict: null } as const;
  await new FileStore(stack.redis).create(account.id, file, bounds);
  t.is((await call(account, `/${id}`)).status, 404);
  await waitFor('the object to be deleted', async () => !(await listObjects()).includes(key));
  t.is(await stack.redis.exists(redisKeys.file(account.id, id)), 0);
  const trash = redisKeys.fileTrash(shardOf(account.id));
  await waitFor('the trash to be empty', async () => (await stack.redis.zscore(trash, key)) === null);
});

test('a deleted file’s object is deleted', async (t) => {
  const account = await stack.createAccount();
  const client = clientOf(account);
  const { id } = await upload(client);
  const [segment] = (await new FileStore(stack.redis).findContent(account.id, id))!.segments;
  t.true((await listObjects()).includes(segment!.key));
  await client.files.delete(id);
  await waitFor('the object to be deleted', async () => !(await listObjects()).includes(segment!.key));
});

test('what is not an upload of a batch’s input is refused, as early as possible', async (t) => {
  const account = await stack.createAccount();
  const client = clientOf(account);
  const file = await toFile(Buffer.from(lines(1)), 'requests.jsonl');
  for (const [params, param, message] of [
    [{ file, purpose: 'vision' }, 'purpose', /"vision" are not supported/],
    [{ file: await toFile(Buffer.from('a'), 'a.zip'), purpose: 'batch' }, 'file', /"a\.zip".*\.jsonl/],
    [
      { file, purpose: 'batch', expires_after: { anchor: 'created_at', seconds: 3_599 } },
      null,
      /3600 to 2592000/,
    ],
    [
      { file, purpose: 'batch', expires_after: { anchor: 'created_at', seconds: 2_592_001 } },
      null,
      /3600 to 2592000/,
    ],
    [{ file, purpose: 'batch', expires_after: { anchor: 'deleted_at', seconds: 3_600 } }, null, /created_at/],
  ] as const) {
    const error = await failure(t, client.files.create(params as unknown as OpenAI.FileCreateParams));
    t.is(error.status, 422, String(message));
    t.regex(error.message, message);
    if (param !== null) t.is((error as unknown as { param: string }).param, param);
  }
  const post = async (form: FormData | string): Promise<Response> =>
    await fetch(`${stack.url}/v1/files`, {
      method: 'POST',
      headers: { authorization: `Bearer ${account.apiKey}` },
      body: form,
    });
  const createForm = (...parts: [name: string, value: string | File][]): FormData => {
    const form = new FormData();
    for (const [name, value] of parts) form.append(name, value);
    return form;
  };
  const one = new File([lines(1)], 'a.jsonl');
  t.is((await post(createForm(['purpose', 'batch'], ['file', one]))).status, 200, 'in another order');
  t.is((await post(createForm(['file', one]))).status, 422, 'no purpose');
  t.is((await post(createForm(['purpose', 'batch']))).status, 422, 'no file');
  t.is((await post(createForm(['purpose', 'batch'], ['file', one], ['file', one]))).status, 422, 'two files');
  t.is((await post(createForm(['purpose', 'batch'], ['other', one], ['file', one]))).status, 422);
  t.is((await post(createForm(['purpose', 'x'.repeat(5_000)], ['file', one]))).status, 422, 'a long field');
  t.is((await post('{}')).status, 415);
  t.is((await client.files.list()).data.length, 1);
});

test('a file name keeps its characters, and a file with wrong lines is stored with its faults', async (t) => {
  const account = await stack.createAccount();
  const client = clientOf(account);
  const zip = Buffer.concat([Buffer.from('504b0304', 'hex'), randomBytes(1_000)]);
  const file = await upload(client, zip, 'запросы 1.jsonl');
  t.is(file.filename, 'запросы 1.jsonl');
  t.is(file.status, 'processed');
  const { verdict } = (await new FileStore(stack.redis).find(account.id, file.id))!;
  t.is(verdict!.faults[0]!.code, 'invalid_json_line');
  const response = await call(account, `/${file.id}/content`);
  t.regex(response.headers.get('content-disposition') ?? '', /^attachment; filename=.*UTF-8''%D0%B7/);
  t.true(Buffer.from(await response.arrayBuffer()).equals(zip));
  const estimate = await call(account, `/${file.id}/cost-estimate?endpoint=/v1/embeddings`);
  t.is(estimate.status, 422);
});

test('ranges, conditions and HEAD work as for images', async (t) => {
  const account = await stack.createAccount();
  const content = Buffer.from(lines(15_000));
  t.true(content.length > 1_200_000);
  const { id } = await upload(clientOf(account), content);
  const get = (headers: Record<string, string> = {}, method = 'GET'): Promise<Response> =>
    call(account, `/${id}/content`, { headers, method });
  const read = async (response: Response): Promise<Buffer> => Buffer.from(await response.arrayBuffer());
  const whole = await get();
  t.is(whole.headers.get('content-length'), String(content.length));
  t.is(whole.headers.get('accept-ranges'), 'bytes');
  t.is(whole.headers.get('cache-control'), 'no-store');
  t.is(whole.headers.get('x-incomplete'), null);
  t.true((await read(whole)).equals(content));
  const etag = whole.headers.get('etag')!;
  for (const [range, from, end] of [
    ['bytes=0-0', 0, 1],
    ['bytes=600000-1100000', 600_000, 1_100_001],
    ['bytes=-5', content.length - 5, content.length],
    ['bytes=1000000-', 1_000_000, content.length],
  ] as const) {
    const response = await get({ range, 'if-range': etag });
    t.is(response.status, 206, range);
    t.is(response.headers.get('content-range'), `bytes ${from}-${end - 1}/${content.length}`);
    t.true((await read(response)).equals(content.subarray(from, end)));
  }
  t.is((await get({ range: `bytes=${content.length}-` })).status, 416);
  t.is((await get({ range: 'bytes=0-1', 'if-range': '"other"' })).status, 200);
  t.is((await get({ 'if-none-match': etag })).status, 304);
  t.is((await get({ 'if-match': '"other"' })).status, 412);
  const head = await get({}, 'HEAD');
  t.is(head.headers.get('content-length'), String(content.length));
  t.is(head.headers.get('etag'), etag);
});

test('an empty file is stored and sent', async (t) => {
  const account = await stack.createAccount();
  const file = await upload(clientOf(account), '');
  t.is(file.bytes, 0);
  const whole = await call(account, `/${file.id}/content`);
  t.is(whole.status, 200);
  t.is(await whole.text(), '');
  t.is((await call(account, `/${file.id}/content`, { headers: { range: 'bytes=0-' } })).status, 416);
});

test('a growing file has its segments in order and says that it is incomplete; a download of it can be resumed', async (t) => {
  const account = await stack.createAccount();
  const id = createFileId(Date.now(), 86_400);
  const run = (name: string, ...args: (string | number)[]) =>
    runFileFunction(stack.redis, account.id, name, id, ...args);
  await run('createGrowingFile', 'results.jsonl', 'batch_output');
  const segments = [900_000, 1, 700_000].map((length) => randomBytes(length));
  const append = async (bytes: Buffer): Promise<void> => {
    const key = createApiFileKey(Date.now() + 86_400_000);
    await objects.put(key, bytes, 'application/jsonl');
    await run('appendSegment', key, bytes.length);
  };
  const get = (headers: Record<string, string> = {}): Promise<Response> =>
    call(account, `/${id}/content`, { headers });
  const read = async (response: Response): Promise<Buffer> => Buffer.from(await response.arrayBuffer());
  const empty = await get();
  t.is(empty.headers.get('x-incomplete'), 'true');
  t.is((await read(empty)).length, 0);

  await append(segments[0]!);
  await append(segments[1]!);
  const first = await get();
  t.is(first.headers.get('x-incomplete'), 'true');
  const start = await read(first);
  t.true(start.equals(Buffer.concat(segments.slice(0, 2))));
  const etag = first.headers.get('etag')!;
  const modified = first.headers.get('last-modified')!;

  await append(segments[2]!);
  await run('finishFile');
  const whole = Buffer.concat(segments);
  const rest = await get({ range: `bytes=${start.length}-`, 'if-range': etag });
  t.is(rest.status, 206);
  t.is(rest.headers.get('x-incomplete'), null);
  t.is(rest.headers.get('content-range'), `bytes ${start.length}-${whole.length - 1}/${whole.length}`);
  t.not(rest.headers.get('etag'), etag);
  t.true(Buffer.concat([start, await read(rest)]).equals(whole));
  t.is((await get({ 'if-none-match': etag })).status, 200);
  t.is((await get({ 'if-modified-since': modified })).status, 200);
  const middle = await get({ range: 'bytes=899999-900001' });
  t.true((await read(middle)).equals(whole.subarray(899_999, 900_002)));
  t.is((await call(account, `/${id}/cost-estimate?endpoint=/v1/embeddings`)).status, 422);
});

test('the limits of an account and of a file are told in the error', async (t) => {
  const account = await small.createAccount();
  const client = clientOf(account, small);
  const tooLarge = await failure(t, upload(client, Buffer.alloc(12_000_001)));
  t.is(tooLarge.status, 413);
  t.regex(tooLarge.message, /larger than 12 MB/);
  const large = Buffer.alloc(9_000_000, `${line(0)}\n`);
  await upload(client, large);
  await upload(client, large);
  const bytes = await failure(t, upload(client, large));
  t.is(bytes.status, 413);
  t.is(bytes.code, 'payload_too_large');
  t.regex(bytes.message, /can have 20 MB of files, and this one has 2 files of 18 MB/);
  await upload(client);
  const count = await failure(t, upload(client));
  t.is(count.status, 413);
  t.regex(count.message, /can have 3 files, and this one has 3 files/);
  const { data } = await client.files.list();
  await client.files.delete(data[0]!.id);
  await upload(client);
  // Nothing was sent for nothing: the refusal comes before the body.
  const refused = startUpload(`${small.url}/v1/files`, account.apiKey, {
    'content-type': 'multipart/form-data; boundary=x',
    'content-length': 9_000_000,
    expect: '100-continue',
  });
  t.is((await refused.answer).status, 413);
  refused.request.destroy();
});

test('files that are uploaded at the same time do not pass the limits together', async (t) => {
  const client = clientOf(await small.createAccount(), small);
  const results = await Promise.allSettled(Array.from({ length: 5 }, () => upload(client)));
  t.is(results.filter(({ status }) => status === 'fulfilled').length, 3);
  t.is((await client.files.list()).data.length, 3);
});

test('an account without money cannot upload', async (t) => {
  const account = await stack.createAccount({ balance: '0' });
  const error = await failure(t, upload(clientOf(account)));
  t.is(error.status, 402);
  t.is(error.code, 'insufficient_balance');
});

test('an upload counts as a request', async (t) => {
  const client = clientOf(await stack.createAccount({ rpm: 1 }));
  await upload(client);
  t.is((await failure(t, upload(client))).status, 429);
});

/** The start of a form whose file goes on. */
const formStart = (name = 'a.jsonl'): string =>
  `--x\r\ncontent-disposition: form-data; name="file"; filename="${name}"\r\ncontent-type: application/octet-stream\r\n\r\n`;
const formHeaders = { 'content-type': 'multipart/form-data; boundary=x', 'transfer-encoding': 'chunked' };

test('a wrong file name or purpose is refused before the file has arrived', async (t) => {
  const account = await stack.createAccount();
  const purpose = '--x\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nvision\r\n';
  for (const start of [formStart('a.txt'), `${purpose}${formStart()}`]) {
    const sending = startUpload(`${stack.url}/v1/files`, account.apiKey, formHeaders);
    sending.request.write(start);
    // The file never ends.
    const timer = setInterval(() => sending.request.write(lines(1)), 20);
    t.teardown(() => clearInterval(timer));
    t.is((await sending.answer).status, 422);
    clearInterval(timer);
    sending.request.destroy();
  }
});

// Serial, because they look at all objects, or interrupt the store.
test.serial('an upload whose caller disconnects leaves nothing', async (t) => {
  const account = await stack.createAccount();
  const before = await listObjects();
  const sent = stack.s3Proxy!.countSent('partNumber=2');
  const broken = startUpload(`${stack.url}/v1/files`, account.apiKey, formHeaders);
  broken.request.write(formStart());
  for (let i = 0; i < 180; i++) broken.request.write(Buffer.alloc(64 * 1024, `${line(i)}\n`));
  // Two parts are stored or on their way.
  await waitFor('the second part', () => stack.s3Proxy!.countSent('partNumber=2') > sent);
  broken.request.destroy();
  await waitFor('the upload to be aborted', async () => (await countUploads()) === 0);
  t.deepEqual((await clientOf(account).files.list()).data, []);
  t.deepEqual(await listObjects(), before);
});

test.serial('while the object store is away, an upload is a 503 and leaves nothing', async (t) => {
  const account = await stack.createAccount();
  const client = clientOf(account);
  const before = await listObjects();
  stack.s3Proxy!.cut();
  try {
    const large = Buffer.alloc(11_000_000, `${line(0)}\n`);
    for (const content of [lines(1), large]) {
      const error = await failure(t, upload(client, content));
      t.is(error.status, 503);
      t.is(error.code, 'service_unavailable');
    }
  } finally {
    stack.s3Proxy!.release();
  }
  t.deepEqual((await client.files.list()).data, []);
  const after = await listObjects();
  t.deepEqual(
    after.filter((key) => !before.includes(key)),
    [],
  );
  t.is(await countUploads(), 0);
  t.is((await upload(client)).status, 'processed');
});

test.serial('while the object store is away, a download is a 503', async (t) => {
  const account = await stack.createAccount();
  const { id } = await upload(clientOf(account));
  stack.s3Proxy!.cut();
  try {
    t.is((await call(account, `/${id}/content`)).status, 503);
  } finally {
    stack.s3Proxy!.release();
  }
});

test('an estimate has the tokens and the price of each model, and says which cannot run', async (t) => {
  const account = await stack.createAccount();
  const client = clientOf(account);
  const embeddings = await upload(
    client,
    [
      line(1, { model: 'use-lite-en-512', input: ['one', 'two'] }),
      line(2, { model: 'gone', input: 'x' }),
    ].join('\n'),
  );
  const response = await call(account, `/${embeddings.id}/cost-estimate`);
  t.is(response.status, 200);
  const estimate = (await response.json()) as {
    total_estimated_cost: number;
    models: { model: string; estimated_cost: number; error?: string }[];
  };
  t.like(estimate, {
    file_id: embeddings.id,
    endpoint: '/v1/embeddings',
    total_requests: 2,
    total_estimated_input_tokens: 3,
    total_estimated_output_tokens: 0,
  });
  t.like(estimate.models, {
    0: { model: 'use-lite-en-512', request_count: 1, estimated_input_tokens: 2 },
    1: { model: 'gone', request_count: 1, estimated_cost: 0 },
  });
  t.regex(estimate.models[1]!.error ?? '', /"gone" does not exist/);
  t.is(estimate.total_estimated_cost, estimate.models[0]!.estimated_cost);

  const chats = await upload(
    client,
    `{"custom_id":"1","body":{"model":"demo-echo","messages":[{"role":"user","content":"Hi"}]}}`,
  );
  t.is((await call(account, `/${chats.id}/cost-estimate`)).status, 422, 'no endpoint');
  t.is((await call(account, `/${chats.id}/cost-estimate?endpoint=/v1/chats`)).status, 422);
  const chat = await call(account, `/${chats.id}/cost-estimate?endpoint=/v1/chat/completions`);
  t.like(await chat.json(), { total_estimated_input_tokens: 2 + 7, total_estimated_output_tokens: 1_024 });

  const wrong = await upload(client, [line(1, {}), 'no', line(1, {})].join('\n'));
  const refused = await call(account, `/${wrong.id}/cost-estimate?endpoint=/v1/embeddings`);
  const { detail } = (await refused.json()) as { detail: { loc: unknown[]; type: string }[] };
  t.deepEqual(
    detail.map(({ loc, type }) => [...loc, type]),
    [
      ['path', 'file_id', 2, 'invalid_json_line'],
      ['path', 'file_id', 3, 'duplicate_custom_id'],
    ],
    'each line that is wrong',
  );
});
