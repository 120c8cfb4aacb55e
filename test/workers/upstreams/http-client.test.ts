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

async function readChunks(httpResponse: HttpResponse): Promise<string[]> {
  const chunks: string[] = [];
  for (let chunk = await httpResponse.next(); chunk !== null; chunk = await httpResponse.next()) {
    chunks.push(chunk.toString());
  }
  return chunks;
}

async function expectFailure(
  t: ExecutionContext,
  promise: Promise<unknown>,
  failure: UpstreamFailure,
): Promise<UpstreamError> {
  const error = await t.throwsAsync(promise, { instanceOf: UpstreamError });
  t.is(error.failure, failure, error.message);
  return error;
}

test('the path and query of the base URL are kept, and consecutive calls share a connection', async (t) => {
  const ports = new Set<number | undefined>();
  const urls: unknown[] = [];
  const { post } = await startRig(t, (request, response) => {
    ports.add(request.socket.remotePort);
    urls.push([request.method, request.url, request.headers['x-a']]);
    response.end('ok');
  });
  for (let call = 0; call < 20; call += 1) {
    const httpResponse = await post();
    t.is(httpResponse.status, 200);
    t.is((await httpResponse.readAll(10)).toString(), 'ok');
  }
  t.deepEqual(urls[0], ['POST', '/v1/things?version=2', 'b']);
  // Two connections are possible: when a call ends, its connection becomes free only in a later tick.
  t.true(ports.size <= 2);
});

test('the query of a call is placed before that of the base URL', async (t) => {
  const urls: unknown[] = [];
  const { client } = await startRig(t, (request, response) => {
    urls.push(request.url);
    response.end('ok');
  });
  const signal = new AbortController().signal;
  const httpResponse = await client.post({ path: '/things?alt=sse', headers: {}, body: '{}', signal });
  httpResponse.release();
  t.deepEqual(urls, ['/v1/things?alt=sse&version=2']);
});

test('a base URL with a password is rejected without echoing it', (t) => {
  const error = t.throws(() => createHttpClient({ baseUrl: 'http://user:hunter2@127.0.0.1/v1' }));
  t.false(error.message.includes('hunter2'));
});

test('a response body is read completely, with or without a declared length', async (t) => {
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

test('a large body with a declared length arrives whole, whichever method reads it and whenever it begins', async (t) => {
  const body = Buffer.from(Array.from({ length: 400_000 }, (_, i) => `${i} `).join(''));
  const { post } = await startRig(t, (_request, response) => {
    response.writeHead(200, { 'content-length': body.length }).end(body);
  });
  const read = {
    readAll: async (httpResponse: HttpResponse) => await httpResponse.readAll(body.length),
    readLarge: async (httpResponse: HttpResponse) =>
      await httpResponse.readLarge(body.length, (whole) => Buffer.from(whole)),
  };
  for (const method of ['readAll', 'readLarge'] as const)
    for (const isLate of [false, true]) {
      const httpResponse = await post();
      // By then, the socket is paused.
      for (let turns = isLate ? 50 : 0; turns > 0; turns--) await new Promise(setImmediate);
      t.true((await read[method](httpResponse)).equals(body), `${method}, ${isLate ? 'late' : 'at once'}`);
    }
});

test('a large body that stops or is cut off fails, and a slow one does not', async (t) => {
  const total = 1_000_000;
  const half = Buffer.alloc(total / 2);
  let serve: (response: ServerResponse) => void = () => undefined;
  const { post } = await startRig(
    t,
    (_request, response) => {
      response.writeHead(200, { 'content-length': total }).write(half);
      serve(response);
    },
    { timeouts: { betweenChunksMs: 1_000 } },
  );
  const readLarge = async (): Promise<number> => (await post()).readLarge(total, ({ length }) => length);
  const stopped = await expectFailure(t, readLarge(), 'timeout');
  t.regex(stopped.message, /nothing more within 1000 ms/);
  serve = (response) => setImmediate(() => response.destroy());
  await expectFailure(t, readLarge(), 'unavailable');
  serve = (response) => {
    let sent = 0;
    const timer = setInterval(() => {
      sent += total / 20;
      response.write(half.subarray(0, total / 20));
      if (sent < total / 2) return;
      clearInterval(timer);
      response.end();
    }, 150);
  };
  t.is(await readLarge(), total);
});

test('a body over its limit is rejected, with or without a declared length', async (t) => {
  for (const isDeclared of [true, false]) {
    const { post } = await startRig(t, (_request, response) => {
      if (isDeclared) {
        response.setHeader('content-length', 1000);
      }
      response.write('x'.repeat(500));
      response.end('x'.repeat(500));
    });
    await expectFailure(t, (await post()).readAll(999), 'unavailable');
    t.is((await (await post()).readAll(1000)).length, 1000);
  }
});

test('only the start of a long error body is read, and then the connection is closed', async (t) => {
  const { post } = await startRig(t, (_request, response) => {
    response.statusCode = 500;
    response.end('x'.repeat(10_000_000));
  });
  const httpResponse = await post();
  t.is(httpResponse.status, 500);
  t.is((await httpResponse.readStart(100)).length, 100);
});

test('failing to connect in time is a timeout', async (t) => {
  // A listener with a full backlog would leave the TCP handshake unanswered, but not on every system. To the caller, a
  // TLS server that sends nothing looks the same.
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
  const error = await expectFailure(
    t,
    client.post({ path: '/', headers: {}, body: '{}', signal }),
    'timeout',
  );
  t.regex(error.message, /no connection within 100 ms/);
  t.false(error.mayStillRun, 'no request was sent');
});

test('a late first byte is a timeout, both of the response head and of the body', async (t) => {
  const silent = await startRig(t, () => {}, { timeouts: { firstByteMs: 50 } });
  const error = await expectFailure(t, silent.post(), 'timeout');
  t.regex(error.message, /no response within 50 ms/);
  t.true(error.mayStillRun);
  // This timeout is longer, because the head must arrive in time even on a busy machine.
  const headOnly = await startRig(t, (_request, response) => response.flushHeaders(), {
    timeouts: { firstByteMs: 1_000 },
  });
  const httpResponse = await headOnly.post();
  await expectFailure(t, httpResponse.next(), 'timeout');
});

test('silence between chunks is a timeout, which follows the received chunks', async (t) => {
  const { post } = await startRig(t, (_request, response) => response.write('a'), {
    timeouts: { betweenChunksMs: 50 },
  });
  const httpResponse = await post();
  t.is((await httpResponse.next())?.toString(), 'a');
  const error = await expectFailure(t, httpResponse.next(), 'timeout');
  t.regex(error.message, /nothing more within 50 ms/);
  t.false(error.isRequestFailure);
});

test('the time of a whole call is limited, even if the response keeps sending data', async (t) => {
  const { post } = await startRig(
    t,
    (_request, response) => {
      const timer = setInterval(() => response.write('a'), 10);
      response.on('close', () => clearInterval(timer));
    },
    // The response must have started by then, even on a busy machine.
    { timeouts: { totalMs: 4_000 } },
  );
  const error = await expectFailure(t, post().then(readChunks), 'timeout');
  t.regex(error.message, /4000 ms/);
  t.true(error.isRequestFailure, 'the request takes longer than the time limit');
  t.true(error.mayStillRun);
});

test.serial('a call that times out before it has a connection is never sent', async (t) => {
  const totalMs = 500;
  let requests = 0;
  const respondToSecond: Serve = (_request, response) => {
    if (requests === 2) response.end();
  };
  const { post, server } = await startRig(t, respondToSecond, { connections: 1, timeouts: { totalMs } });
  server.on('request', () => (requests += 1));
  const calls = [expectFailure(t, post(), 'timeout'), expectFailure(t, post(), 'timeout')];
  const startedAtMs = performance.now();
  // Blocks so that both calls time out in one event loop turn. Otherwise the second might get the first's connection.
  server.once('request', () => {
    while (performance.now() < startedAtMs + totalMs + 10);
  });
  const [first, second] = await Promise.all(calls);
  t.is(requests, 1);
  t.true(first!.mayStillRun);
  t.false(second!.mayStillRun);
  // If the second call had been sent, it would reach the vendor before this one and get the response.
  await readChunks(await post());
  t.is(requests, 2);
});

test('if a vendor sends no body within the time limit of a call, the failure is the vendor’s, not the request’s', async (t) => {
  const { post } = await startRig(t, (_request, response) => response.flushHeaders(), {
    timeouts: { totalMs: 100 },
  });
  const error = await expectFailure(t, post().then(readChunks), 'timeout');
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
    const httpResponse = await post();
    await httpResponse.next();
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    t.is(sent, 0, 'the vendor could send everything although nothing was read');
    let length = 0;
    for (let chunk = await httpResponse.next(); chunk !== null; chunk = await httpResponse.next()) {
      length += chunk.length;
    }
    t.true(length > body.length - 1024 * 1024);
  },
);

test('a reader that is slower than the vendor makes it wait, whatever the size of the chunks', async (t) => {
  const chunk = Buffer.alloc(200, 'x');
  const { post } = await startRig(t, (_request, response) => {
    const send = (): void => {
      while (response.write(chunk));
      response.once('drain', send);
    };
    response.once('close', () => response.removeAllListeners('drain'));
    send();
  });
  const httpResponse = await post();
  const before = process.memoryUsage().arrayBuffers;
  let most = 0;
  for (let i = 0; i < 3_000; i++) {
    await httpResponse.next();
    // The vendor and the socket get a turn after every chunk.
    await new Promise(setImmediate);
    most = Math.max(most, process.memoryUsage().arrayBuffers - before);
  }
  httpResponse.abort();
  t.true(most < 20_000_000, `${most} bytes were held for a reader that has read ${3_000 * chunk.length}`);
});

test('a refused connection is an unavailable failure', async (t) => {
  const closedServer = createTcpServer();
  closedServer.listen(0, '127.0.0.1');
  await once(closedServer, 'listening');
  const { port } = closedServer.address() as AddressInfo;
  closedServer.close();
  await once(closedServer, 'close');
  const client = createHttpClient({ baseUrl: `http://127.0.0.1:${port}` });
  t.teardown(() => client.close());
  const { signal } = new AbortController();
  const error = await expectFailure(
    t,
    client.post({ path: '/', headers: {}, body: '', signal }),
    'unavailable',
  );
  t.regex(error.message, /no connection \(ECONNREFUSED\)/);
});

test('a connection cut before or during the response is an unavailable failure', async (t) => {
  const before = await startRig(t, (request) => request.socket.destroy());
  await expectFailure(t, before.post(), 'unavailable');
  const within = await startRig(t, (_request, response) => {
    response.write('abc', () => response.socket?.destroySoon());
  });
  const httpResponse = await within.post();
  t.is((await httpResponse.next())?.toString(), 'abc');
  await expectFailure(t, httpResponse.next(), 'unavailable');
});

test('data received before the connection was cut can still be read afterwards', async (t) => {
  const { post, server } = await startRig(t, (_request, response) => {
    response.write('abc', () => response.socket?.destroySoon());
  });
  const closed = once(server, 'connection').then(([socket]: unknown[]) => once(socket as never, 'close'));
  const httpResponse = await post();
  await closed;
  await new Promise((resolve) => setImmediate(resolve));
  t.is((await httpResponse.next())?.toString(), 'abc');
  await expectFailure(t, httpResponse.next(), 'unavailable');
});

test('a response that is not HTTP is an unavailable failure', async (t) => {
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
  await expectFailure(t, client.post({ path: '/', headers: {}, body: '{}', signal }), 'unavailable');
});

test('a key that is not a valid header value is an error that does not echo the key', async (t) => {
  const { client } = await startRig(t, (_request, response) => response.end());
  const { signal } = new AbortController();
  const headers = { authorization: 'Bearer secret\nx: y' };
  const error = await expectFailure(
    t,
    client.post({ path: '/', headers, body: '{}', signal }),
    'unavailable',
  );
  t.false(`${error.message} ${String(error.cause)}`.includes('secret'));
});

test.serial(
  'in every phase, aborting a call rejects it immediately with the abort reason and cuts off its connection',
  async (t) => {
    const reason = new Error('the caller disconnected');
    const abortDuring = async (
      rig: Rig,
      start: (httpResponse: Promise<HttpResponse>) => Promise<unknown>,
    ): Promise<void> => {
      const controller = new AbortController();
      const closed = once(rig.server, 'request').then(async ([, response]: unknown[]) => {
        const closing = once(response as ServerResponse, 'close');
        setImmediate(() => controller.abort(reason));
        await closing;
      });
      const error = await t.throwsAsync(start(rig.post(controller.signal)));
      t.is(error, reason);
      await closed;
    };
    await abortDuring(await startRig(t, () => {}), (httpResponse) => httpResponse);
    await abortDuring(
      await startRig(t, (_request, response) => response.flushHeaders()),
      async (httpResponse) => (await httpResponse).next(),
    );
    await abortDuring(
      await startRig(t, (_request, response) => response.write('abc')),
      async (httpResponse) => (await httpResponse).readAll(100),
    );
  },
);

test('a call aborted before it starts, or while it waits for a connection, never reaches the vendor', async (t) => {
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
  'a released body that ends soon leaves its connection usable; any other released body is cut off',
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

test('a hundred calls with one signal cause no leak warning', async (t) => {
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
