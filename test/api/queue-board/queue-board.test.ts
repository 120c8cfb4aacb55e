import test from 'ava';
import { fillQueues, privateWords } from '../../support/board-items.ts';
import { startStack, useStack, type TestStack } from '../../support/stack.ts';

const token = 'admin-token-0123456789abcdef0123456789';
const bearer = { authorization: `Bearer ${token}` };
const password = { authorization: `Basic ${Buffer.from(`somebody:${token}`).toString('base64')}` };

let stack: TestStack;
let endRequests: () => Promise<void>;
test.before(async () => {
  stack = await startStack({ workers: [], env: { ADMIN_TOKEN: token } });
  endRequests = await fillQueues(stack);
});
test.after.always(async () => {
  await endRequests?.();
  await stack?.close();
});

const call = (path: string, headers: Record<string, string> = bearer, method = 'GET'): Promise<Response> =>
  fetch(`${stack.url}/admin/queues${path}`, { method, headers });

interface Board {
  readonly queues: readonly {
    readonly name: string;
    readonly counts: Readonly<Record<string, number>>;
    readonly readOnlyMode: boolean;
    readonly jobs: readonly { readonly id: string; readonly data: unknown; readonly failedReason: string }[];
  }[];
}

const readBoard = async (query = ''): Promise<Board> =>
  (await (await call(`/api/queues${query}`)).json()) as Board;

test('without ADMIN_TOKEN, there is no board: its paths are unknown, whatever token is sent', async (t) => {
  const { url } = await useStack(t, { workers: [] });
  for (const path of ['', '/', '/api/queues', '/static/css/main.css']) {
    const response = await fetch(`${url}/admin/queues${path}`, { headers: bearer });
    const { error } = (await response.json()) as { error: { code: string } };
    t.deepEqual([response.status, error.code], [404, 'not_found'], path);
    t.is(response.headers.get('www-authenticate'), null);
  }
});

test('the token is accepted as a bearer token, and as the password of any user', async (t) => {
  for (const headers of [bearer, password]) t.is((await call('/api/queues', headers)).status, 200);
});

test('a session of the console is accepted, and not one that has ended', async (t) => {
  const session = `${stack.url}/v1/admin/session`;
  const started = await fetch(session, { method: 'POST', headers: bearer });
  const { csrf_token: csrfToken } = (await started.json()) as { csrf_token: string };
  const cookie = started.headers.getSetCookie()[0]!.split(';')[0]!;
  t.is((await call('/api/queues', { cookie })).status, 200);
  const end = { cookie, 'x-csrf-token': csrfToken, origin: stack.url };
  t.is((await fetch(session, { method: 'DELETE', headers: end })).status, 204);
  t.is((await call('/api/queues', { cookie })).status, 401);
});

test('without the token, every path of the board asks to sign in, and says nothing else', async (t) => {
  const wrong = [
    {},
    { authorization: `Bearer ${token}x` },
    { authorization: `Basic ${Buffer.from('a:b').toString('base64')}` },
  ];
  for (const headers of wrong as Record<string, string>[]) {
    for (const path of ['', '/api/queues', '/static/images/logo.svg', '/queue/image', '/nowhere']) {
      const response = await call(path, headers);
      t.is(response.status, 401, path);
      t.regex(response.headers.get('www-authenticate') ?? '', /^Basic realm=/);
      t.is(response.headers.get('cache-control'), 'no-store');
      t.regex(await response.text(), /ADMIN_TOKEN/);
    }
  }
});

test('paths that only begin like the board are not part of it', async (t) => {
  const response = await fetch(`${stack.url}/admin/queuesx`, { headers: bearer });
  t.is(response.status, 404);
  t.is((await call('/nowhere')).status, 404);
  t.is((await call('/static/%2e%2e%2findex.ejs')).status, 404);
  t.is((await call('/static/../index.ejs')).status, 404);
});

test('what changes a queue is refused with 405, and nothing changes', async (t) => {
  const before = (await readBoard()).queues.map(({ name, counts }) => ({ name, counts }));
  for (const [method, path] of [
    ['PUT', '/api/queues/pause'],
    ['PUT', '/api/queues/image/empty'],
    ['PUT', '/api/queues/image/obliterate'],
    ['PUT', '/api/queues/image-bulk/retry/failed'],
    ['PUT', '/api/queues/mail/clean/waiting'],
    ['POST', '/api/queues/image/add'],
    ['PATCH', '/api/queues/image/x/update-data'],
    ['DELETE', '/api/queues/image'],
  ] as const) {
    const response = await call(path, bearer, method);
    t.is(response.status, 405, path);
    t.is(response.headers.get('allow'), 'GET, HEAD');
  }
  t.deepEqual(
    (await readBoard()).queues.map(({ name, counts }) => ({ name, counts })),
    before,
  );
});

test('all queues of BullMQ are shown, read-only, with the number of their items', async (t) => {
  const { queues } = await readBoard();
  const waiting = ({ counts }: Board['queues'][number]): number =>
    counts['waiting']! + counts['prioritized']!;
  t.deepEqual(
    queues.map((queue) => [queue.name, waiting(queue), queue.counts['failed'], queue.readOnlyMode]),
    [
      ['image', 1, 0, true],
      ['image-bulk', 0, 1, true],
      ['embedding', 1, 0, true],
      ['embedding-bulk', 0, 0, true],
      ['mail', 1, 0, true],
      ['webhook', 1, 0, true],
    ],
  );
});

test('no response contains what callers wrote, nor addresses and codes', async (t) => {
  const { queues } = await readBoard();
  const texts: string[] = [];
  const read = async (path: string): Promise<void> => {
    const response = await call(path);
    texts.push(`${path} ${response.status} ${await response.text()}`);
  };
  await read('/api/redis/stats');
  await read('/api/job-schedulers');
  let items = 0;
  for (const { name } of queues) {
    const { queues: active } = await readBoard(`?activeQueue=${name}&status=latest&page=1&jobsPerPage=10`);
    const { jobs } = active.find((queue) => queue.name === name)!;
    texts.push(JSON.stringify(jobs));
    items += jobs.length;
    for (const { id } of jobs)
      for (const part of ['', '/logs', '/flow'])
        await read(`/api/queues/${name}/${encodeURIComponent(id)}${part}`);
    for (const part of ['metrics', 'default-job-options', 'workers', 'rate-limit', 'job-data-schema'])
      await read(`/api/queues/${name}/${part}`);
  }
  t.is(items, 5);
  for (const text of texts) {
    t.notRegex(text, /^\S+ 5\d\d /);
    for (const word of privateWords) t.false(text.includes(word), text);
  }
});

test('a waiting image is shown with its request, account, model and sizes', async (t) => {
  const { queues } = await readBoard('?activeQueue=image&status=latest');
  t.like(queues[0]!.jobs[0]!.data, {
    operation: 'createImage',
    prompt_characters: 'A crimson-lighthouse'.length,
    model: 'demo-svg-image',
  });
});

test('a reason that may quote a prompt is not shown, but that there is one is', async (t) => {
  const { queues } = await readBoard('?activeQueue=image-bulk&status=failed');
  t.regex(queues[1]!.jobs[0]!.failedReason, /^Not shown here/);
});

test('the page loads its own files only, and data is not cached', async (t) => {
  const page = await call('');
  t.is(page.headers.get('content-type'), 'text/html; charset=utf-8');
  t.regex(page.headers.get('content-security-policy') ?? '', /^default-src 'none'; script-src 'self';/);
  const html = await page.text();
  t.notRegex(html, /https?:\/\//);
  const files = [...html.matchAll(/(?:src|href)="(static\/[^"]+)"/g)].map(([, path]) => path!);
  t.true(files.length > 3);
  for (const path of files) {
    const file = await call(`/${path}`);
    t.is(file.status, 200, path);
    t.is(file.headers.get('cache-control'), 'private, max-age=3600');
  }
  const data = await call('/api/queues');
  t.is(data.headers.get('cache-control'), 'no-store');
  for (const { headers } of [page, data]) {
    t.is(headers.get('x-robots-tag'), 'noindex, nofollow');
    t.is(headers.get('x-content-type-options'), 'nosniff');
  }
});

test('a poll reads a limited number of items, whatever is asked for', async (t) => {
  const response = await call('/api/queues?activeQueue=image&jobsPerPage=100000');
  const { queues } = (await response.json()) as { queues: { pagination: { range: object } }[] };
  t.deepEqual(queues[0]?.pagination.range, { start: 0, end: 19 });
  for (const query of ['activeQueue=%25', 'activeQueue=image&activeQueue=mail', 'jobsPerPage=', 'unknown=1'])
    t.is((await call(`/api/queues?${query}`)).status, 200, query);
  for (const query of ['jobsPerPage=x', 'page=0', 'status=nowhere'])
    t.is((await call(`/api/queues?${query}`)).status, 400, query);
});

test('behind a proxy, the page is at the path of PUBLIC_URL', async (t) => {
  const env = { ADMIN_TOKEN: token, PUBLIC_URL: 'https://ai.example/gateway/' };
  const { url } = await useStack(t, { workers: [], env });
  const page = await (await fetch(`${url}/admin/queues`, { headers: bearer })).text();
  t.true(page.includes('<base href="/gateway/admin/queues/" />'));
});
