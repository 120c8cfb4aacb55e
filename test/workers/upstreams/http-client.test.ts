import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';

import test, { type ExecutionContext } from 'ava';

import {
  createHttpClient,
  DEFAULT_HTTP_TIMEOUTS,
  type HttpResponse,
  type HttpClient,
  type HttpClientOptions,
} from '../../../workers/upstreams/http-client.ts';
import { UpstreamError, type UpstreamFailure } from '../../../workers/upstreams/upstream.ts';

type Serve = (request: IncomingMessage, response: ServerResponse) => void;

interface Rig {
  readonly client: HttpClient;
  readonly server: ReturnType<typeof createServer>;
  readonly post: (signal?: AbortSignal) => Promise<HttpResponse>;
}

async function startRig(
  t: ExecutionContext,
  serve: Serve,
  options: Partial<Omit<HttpClientOptions, 'timeouts'>> & {
    timeouts?: Partial<HttpClientOptions['timeouts']>;
  } = {},
): Promise<Rig> {
  const server = createServer((request, response) => {
    request.resume();
    request.on('end', () => serve(request, response));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const client = createHttpClient({
    baseUrl: `http://127.0.0.1:${port}/v1/?version=2`,
    ...options,
    timeouts: { ...DEFAULT_HTTP_TIMEOUTS, ...options.timeouts },
  });
  t.teardown(async () => {
    server.closeAllConnections();
    server.close();
    await client.close();
  });
  return {
    client,
    server,
    post: (signal = new AbortController().signal) =>
      client.post({ path: '/things', headers: { 'x-a': 'b' }, body: '{}', signal }),
  };
}

async function readChunks(answer: HttpResponse): Promise<string[]> {
  const chunks: string[] = [];
  for (let chunk = await answer.next(); chunk !== null; chunk = await answer.next()) {
    chunks.push(chunk.toString());
  }
  return chunks;
}

async function failWith(
  t: ExecutionContext,
  promise: Promise<unknown>,
  failure: UpstreamFailure,
): Promise<UpstreamError> {
  const error = await t.throwsAsync(promise, { instanceOf: UpstreamError });
  t.is(error.failure, failure, error.message);
  return error;
}

test('the base URL keeps its path and query, and consecutive calls share a connection', async (t) => {
  const ports = new Set<number | undefined>();
  const urls: unknown[] = [];
  const { post } = await startRig(t, (request, response) => {
    ports.add(request.socket.remotePort);
    urls.push([request.method, request.url, request.headers['x-a']]);
    response.end('ok');
  });
  for (let call = 0; call < 20; call += 1) {
    const answer = await post();
    t.is(answer.status, 200);
    t.is((await answer.readAll(10)).toString(), 'ok');
  }
  t.deepEqual(urls[0], ['POST', '/v1/things?version=2', 'b']);
  // A call made in the same event-loop turn in which the last one ends does not find its connection free yet.
  t.true(ports.size <= 2);
});

test('a call’s own query comes before that of the base URL', async (t) => {
  const urls: unknown[] = [];
  const { client } = await startRig(t, (request, response) => {
    urls.push(request.url);
    response.end('ok');
  });
  const signal = new AbortController().signal;
  const answer = await client.post({ path: '/things?alt=sse', headers: {}, body: '{}', signal });
  answer.release();
  t.deepEqual(urls, ['/v1/things?alt=sse&version=2']);
});

test('a base URL with a password is rejected without repeating it', (t) => {
  const error = t.throws(() => createHttpClient({ baseUrl: 'http://user:hunter2@127.0.0.1/v1' }));
  t.false(error.message.includes('hunter2'));
});

test('a whole body is received, with or without a declared length', async (t) => {
  const body = Buffer.alloc(3_000_000, 'abc');
  const { post } = await startRig(t, (_request, response) => {
    response.write(body.subarray(0, 1_000_000));
    setImmediate(() => response.end(body.subarray(1_000_000)));
  });
  t.true((await (await post()).readAll(3_000_000)).equals(body));
  const declared = await startRig(t, (_request, response) => {
    response.setHeader('content-length', body.length);
    response.end(body);
  });
  t.true((await (await declared.post()).readAll(3_000_000)).equals(body));
});

test('a body over the limit is rejected, with or without a declared length', async (t) => {
  for (const declares of [true, false]) {
    const { post } = await startRig(t, (_request, response) => {
      if (declares) {
        response.setHeader('content-length', 1000);
      }
      response.write('x'.repeat(500));
      response.end('x'.repeat(500));
    });
    await failWith(t, (await post()).readAll(999), 'unavailable');
    t.is((await (await post()).readAll(1000)).length, 1000);
  }
});

test('only the start of a long error response is read, and its connection is not reused', async (t) => {
  const { post } = await startRig(t, (_request, response) => {
    response.statusCode = 500;
    response.end('x'.repeat(10_000_000));
  });
  const answer = await post();
  t.is(answer.status, 500);
  t.is((await answer.readStart(100)).length, 100);
});

test('a connection that is not established in time is a timeout', async (t) => {
  // A listener that accepts nothing and has a full backlog does not complete the TCP handshake; a silent TLS listener
  // is the same for the caller and works on every system.
  const silent = createTcpServer();
  silent.listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const { port } = silent.address() as AddressInfo;
  const client = createHttpClient({
    baseUrl: `https://127.0.0.1:${port}`,
    timeouts: { ...DEFAULT_HTTP_TIMEOUTS, connectMs: 100 },
  });
  t.teardown(async () => {
    silent.close();
    await client.close();
  });
  const { signal } = new AbortController();
  const error = await failWith(t, client.post({ path: '/', headers: {}, body: '{}', signal }), 'timeout');
  t.regex(error.message, /no connection within 100 ms/);
  t.false(error.mayStillRun, 'nothing was sent');
});

test('a missing first byte is a timeout, before and after the headers', async (t) => {
  const silent = await startRig(t, () => {}, { timeouts: { firstByteMs: 50 } });
  const error = await failWith(t, silent.post(), 'timeout');
  t.regex(error.message, /no response within 50 ms/);
  t.true(error.mayStillRun);
  // The headers themselves must arrive in time, on a busy machine too.
  const headOnly = await startRig(t, (_request, response) => response.flushHeaders(), {
    timeouts: { firstByteMs: 1_000 },
  });
  const answer = await headOnly.post();
  await failWith(t, answer.next(), 'timeout');
});

test('silence between chunks is a timeout after the output before it', async (t) => {
  const { post } = await startRig(t, (_request, response) => response.write('a'), {
    timeouts: { betweenChunksMs: 50 },
  });
  const answer = await post();
  t.is((await answer.next())?.toString(), 'a');
  const error = await failWith(t, answer.next(), 'timeout');
  t.regex(error.message, /nothing more within 50 ms/);
  t.false(error.isRequestFailure);
});

test('the whole call is limited, however active the response is', async (t) => {
  const { post } = await startRig(
    t,
    (_request, response) => {
      const timer = setInterval(() => response.write('a'), 10);
      response.on('close', () => clearInterval(timer));
    },
    // The response must have started by then, on a busy machine too.
    { timeouts: { totalMs: 2_000 } },
  );
  const error = await failWith(t, post().then(readChunks), 'timeout');
  t.regex(error.message, /over 2000 ms/);
  t.true(error.isRequestFailure, 'the request takes longer than its timeout allows');
  t.true(error.mayStillRun);
});

test.serial('a call whose time is up before it has a connection leaves nothing in flight', async (t) => {
  const totalMs = 500;
  let requests = 0;
  const answerSecond: Serve = (_request, response) => {
    if (requests === 2) response.end();
  };
  const { post, server } = await startRig(t, answerSecond, { connections: 1, timeouts: { totalMs } });
  server.on('request', () => (requests += 1));
  const calls = [failWith(t, post(), 'timeout'), failWith(t, post(), 'timeout')];
  const startedAtMs = performance.now();
  // Both calls time out in the same event-loop turn; otherwise the second could get the connection of the first.
  server.once('request', () => {
    while (performance.now() < startedAtMs + totalMs + 10);
  });
  const [first, second] = await Promise.all(calls);
  t.is(requests, 1);
  t.true(first!.mayStillRun);
  t.false(second!.mayStillRun);
  // If the second call had been sent, its request would reach the vendor before this one and get the response.
  await readChunks(await post());
  t.is(requests, 2);
});

test('a vendor that is silent for the whole timeout has failed', async (t) => {
  const { post } = await startRig(t, (_request, response) => response.flushHeaders(), {
    timeouts: { totalMs: 100 },
  });
  const error = await failWith(t, post().then(readChunks), 'timeout');
  t.false(error.isRequestFailure);
});

test.serial(
  'a slow reader is not mistaken for a silent vendor, and pauses reading from the socket',
  async (t) => {
    const body = Buffer.alloc(32 * 1024 * 1024);
    let sent = 0;
    const { post } = await startRig(
      t,
      (_request, response) => {
        response.setHeader('content-length', body.length);
        response.end(body, () => {
          sent = body.length;
        });
      },
      { timeouts: { betweenChunksMs: 500 } },
    );
    const answer = await post();
    await answer.next();
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    t.is(sent, 0, 'the vendor could send everything although nothing was read');
    let length = 0;
    for (let chunk = await answer.next(); chunk !== null; chunk = await answer.next()) {
      length += chunk.length;
    }
    t.true(length > body.length - 1024 * 1024);
  },
);

test('a refused connection is unavailable', async (t) => {
  const closedServer = createTcpServer();
  closedServer.listen(0, '127.0.0.1');
  await once(closedServer, 'listening');
  const { port } = closedServer.address() as AddressInfo;
  closedServer.close();
  await once(closedServer, 'close');
  const client = createHttpClient({ baseUrl: `http://127.0.0.1:${port}` });
  t.teardown(() => client.close());
  const { signal } = new AbortController();
  const error = await failWith(t, client.post({ path: '/', headers: {}, body: '', signal }), 'unavailable');
  t.regex(error.message, /no connection \(ECONNREFUSED\)/);
});

test('a connection that is cut before or during the response is unavailable', async (t) => {
  const before = await startRig(t, (request) => request.socket.destroy());
  await failWith(t, before.post(), 'unavailable');
  const within = await startRig(t, (_request, response) => {
    response.write('abc', () => response.socket?.destroySoon());
  });
  const answer = await within.post();
  t.is((await answer.next())?.toString(), 'abc');
  await failWith(t, answer.next(), 'unavailable');
});

test('data received before a cut is read even if the cut is already known', async (t) => {
  const { post, server } = await startRig(t, (_request, response) => {
    response.write('abc', () => response.socket?.destroySoon());
  });
  const closed = once(server, 'connection').then(([socket]: unknown[]) => once(socket as never, 'close'));
  const answer = await post();
  await closed;
  await new Promise((resolve) => setImmediate(resolve));
  t.is((await answer.next())?.toString(), 'abc');
  await failWith(t, answer.next(), 'unavailable');
});

test('a server that does not speak HTTP is unavailable', async (t) => {
  const server = createTcpServer((socket) => socket.end('SSH-2.0-OpenSSH\r\n'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const client = createHttpClient({ baseUrl: `http://127.0.0.1:${port}` });
  t.teardown(async () => {
    server.close();
    await client.close();
  });
  const { signal } = new AbortController();
  await failWith(t, client.post({ path: '/', headers: {}, body: '{}', signal }), 'unavailable');
});

test('a key that is not a valid header value is an error that does not repeat it', async (t) => {
  const { client } = await startRig(t, (_request, response) => response.end());
  const { signal } = new AbortController();
  const headers = { authorization: 'Bearer secret\nx: y' };
  const error = await failWith(t, client.post({ path: '/', headers, body: '{}', signal }), 'unavailable');
  t.false(`${error.message} ${String(error.cause)}`.includes('secret'));
});

test.serial(
  'an abort rejects immediately with its own reason and closes the connection, in every phase',
  async (t) => {
    const reason = new Error('the caller left');
    const leave = async (
      rig: Rig,
      begin: (answer: Promise<HttpResponse>) => Promise<unknown>,
    ): Promise<void> => {
      const controller = new AbortController();
      const closed = once(rig.server, 'request').then(async ([, response]: unknown[]) => {
        const closing = once(response as ServerResponse, 'close');
        setImmediate(() => controller.abort(reason));
        await closing;
      });
      const error = await t.throwsAsync(begin(rig.post(controller.signal)));
      t.is(error, reason);
      await closed;
    };
    await leave(await startRig(t, () => {}), (answer) => answer);
    await leave(await startRig(t, (_request, response) => response.flushHeaders()), async (answer) =>
      (await answer).next(),
    );
    await leave(await startRig(t, (_request, response) => response.write('abc')), async (answer) =>
      (await answer).readAll(100),
    );
  },
);

test('a call that is aborted before it starts, or while it waits for a connection, never reaches the vendor', async (t) => {
  let requests = 0;
  const { post } = await startRig(
    t,
    (_request, response) => {
      requests += 1;
      if (requests === 1) {
        response.flushHeaders();
      } else {
        response.end();
      }
    },
    { connections: 1 },
  );
  const reason = new Error('too late');
  t.is(await t.throwsAsync(post(AbortSignal.abort(reason))), reason);
  const first = await post();
  const controller = new AbortController();
  const waiting = post(controller.signal);
  controller.abort(reason);
  t.is(await t.throwsAsync(waiting), reason);
  first.abort();
  await (await post()).readAll(10);
  t.is(requests, 2);
});

test.serial(
  'a released body that ends by itself keeps its connection, one that does not is closed',
  async (t) => {
    const ports: (number | undefined)[] = [];
    const { post } = await startRig(t, (request, response) => {
      ports.push(request.socket.remotePort);
      response.write('a');
      if (ports.length === 1) {
        setImmediate(() => response.end('b'));
      }
    });
    const first = await post();
    await first.next();
    first.release();
    await new Promise((resolve) => setTimeout(resolve, 50));
    const second = await post();
    await second.next();
    t.is(ports[0], ports[1]);
    second.release();
    await new Promise((resolve) => setTimeout(resolve, 1200));
    await (await post()).next();
    t.not(ports[2], ports[1]);
  },
);

test('a hundred calls under one signal cause no leak warning', async (t) => {
  const warnings: Error[] = [];
  const onWarning = (warning: Error): number => warnings.push(warning);
  process.on('warning', onWarning);
  t.teardown(() => process.off('warning', onWarning));
  const { post } = await startRig(t, (_request, response) => response.end('ok'));
  const { signal } = new AbortController();
  await Promise.all(Array.from({ length: 100 }, async () => (await post(signal)).readAll(10)));
  await new Promise((resolve) => setImmediate(resolve));
  t.deepEqual(warnings, []);
});
