import test, { type ExecutionContext } from 'ava';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { AppError } from '../../../shared/contract/errors.ts';
import { isPublicAddress } from '../../../shared/platform/runtime/address-class.ts';
import type { ResolveHost } from '../../../workers/outbound/resolve-host.ts';
import {
  createSafeFetchClient,
  type SafeFetchClient,
  type SafeFetchOptions,
} from '../../../workers/outbound/safe-fetch-client.ts';
import { useHttpsServer } from '../../support/https-server.ts';
import { testOnlyCertificate } from '../../support/test-only-certificate.ts';
import { waitFor } from '../../support/wait-for.ts';

/** A new signal that is never aborted. Many fetches with one signal would make Node warn of a leak. */
function never(): AbortSignal {
  return new AbortController().signal;
}

const timeouts = { connectMs: 5_000, totalMs: 15_000, rejectionStepMs: 1 };

/** A client that treats only the tests' own server, at 127.0.0.1, as part of the public internet. */
function createClient(port: number, options: SafeFetchOptions = {}): SafeFetchClient {
  return createSafeFetchClient({
    resolveHost: () => Promise.resolve(['127.0.0.1']),
    isPublic: (address) => address === '127.0.0.1',
    ca: testOnlyCertificate,
    ports: new Set([443, port]),
    timeouts,
    ...options,
  });
}

async function fetchText(
  client: SafeFetchClient,
  url: string,
  { maxBytes = 1_000_000, accountId = 'account' } = {},
): Promise<string> {
  const { bytes } = await client.fetchBytes(url, { maxBytes, accountId, signal: never() });
  return bytes.toString('utf8');
}

/** The error that the caller of a failed fetch gets. */
async function failureOf(t: ExecutionContext, fetching: Promise<unknown>): Promise<string> {
  const error = await t.throwsAsync(fetching, { instanceOf: AppError });
  return `${error?.code}: ${error?.publicMessage}`;
}

const notPublic = 'has a host that is not on the public internet, so it is not fetched.';

test('a public URL returns its bytes and type, fetched on a separate connection that is then closed', async (t) => {
  const server = await useHttpsServer(t, (_request, response) => {
    response.writeHead(200, { 'content-type': 'image/png' }).end('bytes');
  });
  const client = createClient(server.port);
  const url = `https://pictures.test:${server.port}/a%20b.png?size=1#top`;
  for (let round = 1; round <= 2; round++) {
    const { bytes, contentType } = await client.fetchBytes(url, {
      maxBytes: 5,
      accountId: 'account',
      signal: never(),
    });
    t.is(bytes.toString(), 'bytes');
    t.is(contentType, 'image/png');
    t.is(server.connections, round);
  }
  t.is(server.requests[0]?.url, '/a%20b.png?size=1');
  await server.whenDisconnected();
});

test('no internal headers are sent, and received cookies are not sent back', async (t) => {
  const server = await useHttpsServer(t, (request, response) => {
    response.setHeader('set-cookie', 'who=me; Path=/');
    if (request.url === '/first') response.writeHead(302, { location: '/second' }).end();
    else response.end('there');
  });
  t.is(await fetchText(createClient(server.port), `https://pictures.test:${server.port}/first`), 'there');
  t.is(server.requests.length, 2);
  for (const request of server.requests) {
    t.is(request.method, 'GET');
    t.deepEqual(request.headers, {
      host: `pictures.test:${server.port}`,
      connection: 'close',
      'user-agent': 'model-gateway',
      accept: 'image/*,*/*;q=0.5',
      'accept-encoding': 'identity',
    });
  }
});

test('a URL that is not https, or has a user or another port, is rejected without resolving its host', async (t) => {
  const client = createSafeFetchClient({ resolveHost: () => Promise.reject(new Error('asked')) });
  const cases = {
    'http://pictures.test/a.png?key=1': 'http://pictures.test/a.png is not https',
    'ftp://pictures.test/a.png': 'ftp://pictures.test/a.png is not https',
    'file:///etc/passwd': 'of an image_url is not https',
    'gopher://pictures.test/1': 'gopher://pictures.test/1 is not https',
    'pictures.test/a.png': 'of an image_url cannot be parsed',
    'https://': 'of an image_url cannot be parsed',
    'https://256.1.1.1/': 'of an image_url cannot be parsed',
    'https://[fe80::1%25eth0]/': 'of an image_url cannot be parsed',
    'https://user@pictures.test/a.png': 'https://pictures.test/a.png contains a user name or a password',
    'https://:secret@pictures.test/': 'https://pictures.test/ contains a user name or a password',
    'https://pictures.test:8443/': 'https://pictures.test:8443/ uses a port other than 443',
    'https://pictures.test:22/': 'https://pictures.test:22/ uses a port other than 443',
  };
  for (const [url, reason] of Object.entries(cases)) {
    const fetching = client.fetchBytes(url, { maxBytes: 1, accountId: 'account', signal: never() });
    t.is(await failureOf(t, fetching), `unsafe_url: messages: The URL ${reason}, so it is not fetched.`);
  }
});

test('an internal address is rejected in every spelling, and never connected to', async (t) => {
  const server = await useHttpsServer(t, (_request, response) => response.end());
  const client = createClient(server.port, { isPublic: isPublicAddress });
  const hosts = [
    '127.0.0.1 127.1 127.0.1 2130706433 0x7f000001 0x7f.1 0177.0.0.1 017700000001 127.0.0.1. ①②⑦.0.0.1 127。0。0。1',
    '%31%32%37.0.0.1 0 0.0.0.0 169.254.169.254 2852039166 0xa9fea9fe 10.0.0.1 192.168.1.1 100.100.100.200',
    '168.63.129.16 [::1] [::] [0:0:0:0:0:0:0:1] [::ffff:127.0.0.1] [::ffff:7f00:1] [::127.0.0.1] [64:ff9b::7f00:1]',
    '[2002:7f00:1::] [fd00:ec2::254] [fe80::1]',
  ].flatMap((line) => line.split(' '));
  for (const host of hosts) {
    const url = `https://${host}:${server.port}/`;
    const failure = await failureOf(t, fetchText(client, url));
    t.true(failure.startsWith('unsafe_url: ') && failure.endsWith(notPublic), `${host}: ${failure}`);
  }
  t.is(server.connections, 0);
});

test('a name with one non-public address is rejected, even if its other addresses are public', async (t) => {
  const server = await useHttpsServer(t, (_request, response) => response.end());
  const url = `https://pictures.test:${server.port}/`;
  for (const other of ['10.0.0.1', '169.254.169.254', '::1', '::ffff:10.0.0.1', 'nonsense']) {
    for (const addresses of [['127.0.0.1', other], [other, '127.0.0.1'], [other]]) {
      const client = createClient(server.port, { resolveHost: () => Promise.resolve(addresses) });
      t.is(await failureOf(t, fetchText(client, url)), `unsafe_url: messages: The URL ${url} ${notPublic}`);
    }
  }
  t.is(server.connections, 0);
});

test('an internal name and one that does not exist are rejected with the same message and the same delay', async (t) => {
  const stepMs = 200;
  const url = 'https://name.internal/a.png?token=secret';
  const lookups: Record<string, ResolveHost> = {
    exists: () => Promise.resolve(['10.1.2.3']),
    existsElsewhere: () => Promise.resolve(['fd00::1']),
    missing: () => Promise.resolve([]),
    existsSlowly: () => new Promise((resolve) => setTimeout(resolve, stepMs / 4, ['10.1.2.3'])),
  };
  for (const [name, resolveHost] of Object.entries(lookups)) {
    const client = createSafeFetchClient({ resolveHost, timeouts: { ...timeouts, rejectionStepMs: stepMs } });
    const startedAtMs = performance.now();
    const failure = await failureOf(t, fetchText(client, url));
    const tookMs = performance.now() - startedAtMs;
    t.is(failure, `unsafe_url: messages: The URL https://name.internal/a.png ${notPublic}`, name);
    // Node's timers may fire a millisecond early.
    t.true(tookMs >= stepMs - 2, `${name} took ${tookMs} ms`);
  }
});

test('the connection goes to the checked address, even if the name then resolves to another address', async (t) => {
  const server = await useHttpsServer(t, (_request, response) => response.end('checked'));
  let lookups = 0;
  const resolveHost: ResolveHost = () => {
    lookups += 1;
    return Promise.resolve(lookups === 1 ? ['127.0.0.1'] : ['169.254.169.254']);
  };
  const client = createClient(server.port, { resolveHost });
  const url = `https://pictures.test:${server.port}/`;
  t.is(await fetchText(client, url), 'checked');
  t.is(lookups, 1);
  t.is(server.connections, 1);
  t.regex(await failureOf(t, fetchText(client, url)), /^unsafe_url/);
  t.is(server.connections, 1);
});

test('a redirect to the same name is resolved and checked again', async (t) => {
  const server = await useHttpsServer(t, (_request, response) =>
    response.writeHead(302, { location: '/b' }).end(),
  );
  let lookups = 0;
  const resolveHost: ResolveHost = () => {
    lookups += 1;
    return Promise.resolve(lookups === 1 ? ['127.0.0.1'] : ['169.254.169.254']);
  };
  const client = createClient(server.port, { resolveHost });
  const url = `https://pictures.test:${server.port}/a`;
  t.is(
    await failureOf(t, fetchText(client, url)),
    `unsafe_url: messages: The URL ${url} redirects to a URL that ${notPublic}`,
  );
  t.is(server.connections, 1);
});

test('a connection to an address other than the checked one is cut before a request is sent', async (t) => {
  const server = await useHttpsServer(t, (_request, response) => response.end());
  let checks = 0;
  const isPublic = (): boolean => {
    checks += 1;
    return checks === 1;
  };
  const url = `https://pictures.test:${server.port}/`;
  t.regex(await failureOf(t, fetchText(createClient(server.port, { isPublic }), url)), /^validation_failed/);
  await server.whenDisconnected();
  t.is(server.connections, 1);
  t.is(server.requests.length, 0);
});

test('URLs with a literal public IP address are fetched like those with a name', async (t) => {
  const server = await useHttpsServer(t, (_request, response) => response.end('literal'));
  const client = createClient(server.port, { resolveHost: () => Promise.reject(new Error('asked')) });
  t.is(await fetchText(client, `https://127.0.0.1:${server.port}/`), 'literal');
});

test('three redirects are followed, including relative ones and those to other names; a fourth redirect or a loop is an error', async (t) => {
  const server = await useHttpsServer(t, (request, response) => {
    const { port } = server;
    const next: Record<string, string> = {
      '/0': '1',
      '/1': `https://other.pictures.test:${port}/2?a=b`,
      '/2?a=b': `//pictures.test:${port}/3`,
      '/four': '/0',
      '/loop': '/loop',
    };
    const location = next[request.url ?? ''];
    if (location === undefined) response.end(`${request.headers.host} ${request.url}`);
    else
      response.writeHead([301, 302, 303, 307, 308][server.requests.length % 5]!, { location }).end('moved');
  });
  const base = `https://pictures.test:${server.port}`;
  const client = createClient(server.port);
  t.is(await fetchText(client, `${base}/0`), `pictures.test:${server.port} /3`);
  t.is(server.requests[2]?.headers.host, `other.pictures.test:${server.port}`);
  for (const path of ['four', 'loop']) {
    const requests = server.requests.length;
    t.is(
      await failureOf(t, fetchText(client, `${base}/${path}`)),
      `validation_failed: messages: The URL ${base}/${path} could not be fetched: it redirects more than 3 times.`,
    );
    t.is(server.requests.length - requests, 4);
  }
});

test('a redirect to a URL that must not be fetched is rejected like the URL itself', async (t) => {
  let isLoopbackPublic = true;
  let location = '';
  const server = await useHttpsServer(t, (_request, response) => {
    isLoopbackPublic = false;
    response.writeHead(302, { location }).end();
  });
  const client = createClient(server.port, {
    isPublic: (address) => (isLoopbackPublic && address === '127.0.0.1') || isPublicAddress(address),
    resolveHost: (host) => Promise.resolve(host === 'pictures.test' ? ['127.0.0.1'] : ['10.0.0.1']),
  });
  const url = `https://pictures.test:${server.port}/a.png`;
  const targets: Record<string, string> = {
    [`http://pictures.test:${server.port}/`]: 'is not https, so it is not fetched.',
    'file:///etc/passwd': 'is not https, so it is not fetched.',
    'data:image/png;base64,QQ==': 'is not https, so it is not fetched.',
    'https://': 'cannot be parsed, so it is not fetched.',
    [`https://me:you@pictures.test:${server.port}/`]:
      'contains a user name or a password, so it is not fetched.',
    'https://pictures.test:6379/': 'uses a port other than 443, so it is not fetched.',
    [`https://127.0.0.1:${server.port}/`]: notPublic,
    [`https://0x7f.1:${server.port}/`]: notPublic,
    'https://169.254.169.254/latest/meta-data/': notPublic,
    [`https://[::1]:${server.port}/`]: notPublic,
    'https://redis.internal/': notPublic,
  };
  for (const [target, reason] of Object.entries(targets)) {
    isLoopbackPublic = true;
    location = target;
    const connections = server.connections;
    t.is(
      await failureOf(t, fetchText(client, url)),
      `unsafe_url: messages: The URL ${url} redirects to a URL that ${reason}`,
      target,
    );
    t.is(server.connections, connections + 1, target);
  }
});

test('a body is read only up to the limit, for any declared length', async (t) => {
  let sent = 0;
  const server = await useHttpsServer(t, (request, response) => {
    if (request.url === '/endless') {
      const write = (): void => {
        while (!response.destroyed) {
          sent += 10_000;
          if (!response.write(Buffer.alloc(10_000))) break;
        }
      };
      response.on('drain', write);
      write();
    } else if (request.url === '/declared') {
      response.writeHead(200, { 'content-length': 1_000_001 }).flushHeaders();
    } else if (request.url === '/short') {
      response.writeHead(200, { 'content-length': 100 }).write('ten bytes.');
      response.socket?.end();
    } else if (request.url === '/long') {
      // Writes to the socket, because response.write does not allow more than the declared length.
      response.socket?.end('HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nthree and more');
    } else if (request.url === '/chunked') {
      response.writeHead(200, { 'transfer-encoding': 'chunked' }).write('abc');
      setImmediate(() => response.destroy());
    } else {
      response.end(Buffer.alloc(Number(request.url?.slice(1)), 'x'));
    }
  });
  const base = `https://pictures.test:${server.port}`;
  const client = createClient(server.port);
  const fail = (path: string): Promise<string> => failureOf(t, fetchText(client, `${base}${path}`));
  t.regex(await fail('/endless'), /^validation_failed: .*: it is larger than 1 MB\.$/);
  await server.whenDisconnected();
  // The server could write somewhat more than the limit, because of the buffers at both ends.
  t.true(sent < 50_000_000, String(sent));
  t.regex(await fail('/declared'), /larger than 1 MB/);
  await server.whenDisconnected();
  t.regex(await fail('/short'), /: its response was cut off\.$/);
  t.regex(await fail('/chunked'), /: its response was cut off\.$/);
  t.is(await fetchText(client, `${base}/long`), 'thr');
  t.regex(await fail('/1000001'), /larger than 1 MB/);
  t.is((await fetchText(client, `${base}/1000000`)).length, 1_000_000);
  t.is(await fetchText(client, `${base}/0`), '');
});

test('compressed bodies are rejected without reading them', async (t) => {
  const server = await useHttpsServer(t, (request, response) => {
    response.setHeader('content-encoding', (request.url ?? '').slice(1).split(','));
    response.end(gzipSync('packed'));
  });
  const client = createClient(server.port);
  for (const encoding of ['gzip', 'GZIP', 'br', 'deflate', 'zstd', 'x-unknown', 'identity,gzip']) {
    const failure = await failureOf(t, fetchText(client, `https://pictures.test:${server.port}/${encoding}`));
    t.regex(failure, /^validation_failed: .*: its response is compressed\.$/, encoding);
  }
  t.not(await fetchText(client, `https://pictures.test:${server.port}/identity`), '');
});

test('any status other than 200 is an error', async (t) => {
  const server = await useHttpsServer(t, (request, response) =>
    response.writeHead(Number(request.url?.slice(1))).end(),
  );
  const client = createClient(server.port);
  for (const status of [201, 204, 206, 302, 304, 401, 404, 429, 500]) {
    const url = `https://pictures.test:${server.port}/${status}`;
    t.is(
      await failureOf(t, fetchText(client, url)),
      `validation_failed: messages: The URL ${url} could not be fetched: its server responded with status ${status}.`,
    );
  }
});

const noAnswer = /^validation_failed: .*: its server did not respond over https with a valid certificate\.$/;

test('a certificate for another name, or by an unknown issuer, is rejected before a request is sent', async (t) => {
  const server = await useHttpsServer(t, (_request, response) => response.end());
  const client = createClient(server.port);
  t.regex(await failureOf(t, fetchText(client, `https://other.test:${server.port}/`)), noAnswer);
  const options: SafeFetchOptions = {
    resolveHost: () => Promise.resolve(['127.0.0.1']),
    isPublic: () => true,
    ports: new Set([server.port]),
  };
  const withoutTestCa = createSafeFetchClient(options);
  t.regex(await failureOf(t, fetchText(withoutTestCa, `https://pictures.test:${server.port}/`)), noAnswer);
  t.is(server.connections, 2);
  t.is(server.requests.length, 0);
});

test.serial('environment variables neither turn off certificate checks nor set a proxy', async (t) => {
  const variables = {
    NODE_TLS_REJECT_UNAUTHORIZED: '0',
    HTTPS_PROXY: 'http://127.0.0.1:9',
    https_proxy: 'http://127.0.0.1:9',
    ALL_PROXY: 'http://127.0.0.1:9',
    NODE_USE_ENV_PROXY: '1',
  };
  Object.assign(process.env, variables);
  t.teardown(() => {
    for (const name of Object.keys(variables)) delete process.env[name];
  });
  const server = await useHttpsServer(t, (_request, response) => response.end('direct'));
  const client = createClient(server.port);
  t.is(await fetchText(client, `https://pictures.test:${server.port}/`), 'direct');
  t.regex(await failureOf(t, fetchText(client, `https://other.test:${server.port}/`)), noAnswer);
});

test('a closed port and a server without TLS are reported as not answering', async (t) => {
  const plain = createServer((socket) => socket.resume().end('HTTP/1.1 200 OK\r\n\r\nplain')).listen(
    0,
    '127.0.0.1',
  );
  await once(plain, 'listening');
  const { port } = plain.address() as AddressInfo;
  t.regex(await failureOf(t, fetchText(createClient(port), `https://pictures.test:${port}/`)), noAnswer);
  plain.close();
  await once(plain, 'close');
  t.regex(await failureOf(t, fetchText(createClient(port), `https://pictures.test:${port}/`)), noAnswer);
});

test('the next address of a name is tried if the first does not answer', async (t) => {
  const server = await useHttpsServer(t, (_request, response) => response.end('second'));
  const client = createClient(server.port, {
    // Nothing listens on the first: the server is bound to 127.0.0.1 only.
    resolveHost: () => Promise.resolve(['::1', '127.0.0.1']),
    isPublic: () => true,
  });
  t.is(await fetchText(client, `https://pictures.test:${server.port}/`), 'second');
});

test('a hanging lookup, a silent server and a slow body are aborted after the total timeout', async (t) => {
  const server = await useHttpsServer(t, (request, response) => {
    if (request.url === '/silent') return;
    response.writeHead(200);
    const timer = setInterval(() => response.write('.'), 5);
    response.on('close', () => clearInterval(timer));
  });
  const shortTimeouts = { ...timeouts, totalMs: 300 };
  const base = `https://pictures.test:${server.port}`;
  const client = createClient(server.port, { timeouts: shortTimeouts });
  for (const path of ['/silent', '/slow']) {
    t.is(
      await failureOf(t, fetchText(client, `${base}${path}`)),
      `validation_failed: messages: The URL ${base}${path} could not be fetched: it took longer than 0.3 s.`,
    );
  }
  await server.whenDisconnected();
  const resolveHost: ResolveHost = async (_host, signal) => {
    await once(signal, 'abort');
    throw signal.reason;
  };
  const unresolving = createClient(server.port, { timeouts: shortTimeouts, resolveHost });
  t.regex(
    await failureOf(t, fetchText(unresolving, base)),
    /^validation_failed: .* it took longer than 0\.3 s\.$/,
  );
});

test('a server that never completes the handshake is aborted after the connect timeout', async (t) => {
  const sockets: Socket[] = [];
  const mute = createServer((socket) => sockets.push(socket.on('error', () => undefined).resume()));
  mute.listen(0, '127.0.0.1');
  await once(mute, 'listening');
  const { port } = mute.address() as AddressInfo;
  t.teardown(() => mute.close());
  const client = createClient(port, { timeouts: { ...timeouts, connectMs: 100, totalMs: 60_000 } });
  t.regex(await failureOf(t, fetchText(client, `https://pictures.test:${port}/`)), noAnswer);
  await waitFor('the connection to close', () => sockets.length === 1 && sockets[0]!.closed);
});

test('in every phase, aborting a fetch rejects it immediately with the abort reason and cuts the connection', async (t) => {
  const reason = new Error('the caller disconnected');
  const server = await useHttpsServer(t, (request, response) => {
    if (request.url === '/body') response.writeHead(200).write('some');
  });
  const mute = createServer((socket) => socket.on('error', () => undefined).resume()).listen(0, '127.0.0.1');
  await once(mute, 'listening');
  const mutePort = (mute.address() as AddressInfo).port;
  t.teardown(() => mute.close());
  const client = createSafeFetchClient({
    resolveHost: () => Promise.resolve(['127.0.0.1']),
    isPublic: () => true,
    ca: testOnlyCertificate,
    ports: new Set([server.port, mutePort]),
    // Longer than a test may take.
    timeouts: { ...timeouts, connectMs: 600_000, totalMs: 600_000 },
  });
  const abortWhen = async (url: string, isReached: () => Promise<boolean> | boolean): Promise<void> => {
    const abort = new AbortController();
    const fetching = client.fetchBytes(url, { maxBytes: 1_000, accountId: 'account', signal: abort.signal });
    const failing = t.throwsAsync(fetching);
    await waitFor(url, isReached);
    abort.abort(reason);
    t.is(await failing, reason, url);
  };
  const countConnections = (): Promise<number> =>
    new Promise((resolve, reject) => mute.getConnections((error, n) => (error ? reject(error) : resolve(n))));

  await abortWhen(`https://pictures.test:${mutePort}/`, async () => (await countConnections()) === 1);
  await waitFor('the handshake to end', async () => (await countConnections()) === 0);
  await abortWhen(`https://pictures.test:${server.port}/silent`, () => server.requests.length === 1);
  await abortWhen(`https://pictures.test:${server.port}/body`, () => server.requests.length === 2);
  await server.whenDisconnected();
  const aborted = client.fetchBytes('https://pictures.test/', {
    maxBytes: 1,
    accountId: 'account',
    signal: AbortSignal.abort(reason),
  });
  t.is(await t.throwsAsync(aborted), reason);
});

test('a process fetches sixteen URLs at a time, and starts the next when one of them is done', async (t) => {
  const waiting: (() => void)[] = [];
  const server = await useHttpsServer(t, (_request, response) => waiting.push(() => response.end('done')));
  const client = createClient(server.port);
  const fetches = Array.from({ length: 20 }, (_, i) =>
    fetchText(client, `https://pictures.test:${server.port}/${i}`, { accountId: `account ${i}` }),
  );
  await waitFor('sixteen requests', () => waiting.length === 16);
  waiting.shift()!();
  t.is(await Promise.race(fetches), 'done');
  await waitFor('the seventeenth request', () => server.requests.length === 17);
  t.is(waiting.length, 16);
  while (waiting.length > 0 || server.requests.length < 20) {
    waiting.shift()?.();
    await waitFor('the next request', () => waiting.length > 0 || server.requests.length === 20);
  }
  t.deepEqual(
    await Promise.all(fetches),
    Array.from({ length: 20 }, () => 'done'),
  );
});

test('links with a server that hangs delay only the account that sent them', async (t) => {
  const hanging: (() => void)[] = [];
  const server = await useHttpsServer(t, (request, response) => {
    if (request.url === '/quick') response.end('done');
    else hanging.push(() => response.end('late'));
  });
  const client = createClient(server.port);
  const base = `https://pictures.test:${server.port}`;
  const fetches = Array.from({ length: 25 }, () =>
    fetchText(client, `${base}/hangs`, { accountId: 'attacker' }),
  );
  await waitFor('the attacker to use its share of the connections', () => hanging.length === 8);
  for (const accountId of ['ann', 'bob', 'carol']) {
    t.is(await fetchText(client, `${base}/quick`, { accountId }), 'done');
  }
  t.is(hanging.length, 8);
  for (let released = 0; released < 25; released++) {
    await waitFor('a request that hangs', () => hanging.length > released);
    hanging[released]!();
  }
  t.true((await Promise.all(fetches)).every((text) => text === 'late'));
});
