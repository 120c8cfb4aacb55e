import test, { type ExecutionContext } from 'ava';
import { once } from 'node:events';
import sharp from 'sharp';
import { AppError } from '../../../shared/contract/errors.ts';
import { FairBudget } from '../../../shared/fairness/fair-budget.ts';
import { createImageChecker } from '../../../workers/media/check-image.ts';
import { createMediaLoader, type MediaSources } from '../../../workers/media/media-loader.ts';
import { createSafeFetchClient } from '../../../workers/outbound/safe-fetch-client.ts';
import { useHttpsServer } from '../../support/https-server.ts';
import { testOnlyCertificate } from '../../support/test-only-certificate.ts';
import { useDecoders } from '../../support/use-decoders.ts';
import { waitFor } from '../../support/wait-for.ts';

/** A new signal that is never aborted. Many loads with one signal would make Node warn of a leak. */
function never(): AbortSignal {
  return new AbortController().signal;
}

const request = { accountId: 'account', deadlineAtMs: Date.now() + 600_000 };

function draw(background: string): Promise<Buffer> {
  return sharp({ create: { width: 20, height: 10, channels: 3, background } })
    .png()
    .toBuffer();
}

const decoders = useDecoders(test);
const createMemory = (): FairBudget => new FairBudget({ capacity: 512_000_000 });

/** Sources that treat the tests' own server as part of the public internet. */
function createSources(port: number): MediaSources {
  const fetchClient = createSafeFetchClient({
    resolveHost: () => Promise.resolve(['127.0.0.1']),
    isPublic: (address) => address === '127.0.0.1',
    ca: testOnlyCertificate,
    ports: new Set([port]),
  });
  return { fetchClient, checkImage: createImageChecker(decoders), memory: createMemory() };
}

/** Sources that return the given number of bytes and pixels for any URL. */
function createFakeSources(bytes: number, pixels: number): MediaSources {
  return {
    fetchClient: { fetchBytes: () => Promise.resolve({ bytes: Buffer.alloc(bytes), contentType: null }) },
    checkImage: () => Promise.resolve({ mediaType: 'image/png', pixels }),
    memory: createMemory(),
  };
}

async function failureOf(t: ExecutionContext, loading: Promise<unknown>): Promise<string> {
  const error = await t.throwsAsync(loading, { instanceOf: AppError });
  return `${error?.code}: ${error?.publicMessage}`;
}

test('a URL is fetched once per request, even if it is loaded several times', async (t) => {
  const png = await draw('red');
  const server = await useHttpsServer(t, (_request, response) => response.end(png));
  const url = `https://pictures.test:${server.port}/a.png`;
  const sources = createSources(server.port);
  const loader = createMediaLoader(sources, request);
  const expected = { mediaType: 'image/png', base64: png.toString('base64') };
  t.deepEqual(await Promise.all([loader.loadImage(url, never()), loader.loadImage(url, never())]), [
    expected,
    expected,
  ]);
  t.deepEqual(await loader.loadImage(url, never()), expected);
  t.is(server.requests.length, 1);
  t.deepEqual(await createMediaLoader(sources, request).loadImage(url, never()), expected);
  t.is(server.requests.length, 2);
});

test('the type of an image is read from its bytes, not from the data URI or the server', async (t) => {
  const base64 = (await draw('red')).toString('base64');
  const server = await useHttpsServer(t, (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end(Buffer.from(base64, 'base64'));
  });
  const loader = createMediaLoader(createSources(server.port), request);
  for (const url of [
    `data:image/jpeg;base64,${base64}`,
    `DATA:application/pdf;charset=utf-8;base64,${base64}`,
    `https://pictures.test:${server.port}/a.gif`,
  ]) {
    t.deepEqual(await loader.loadImage(url, never()), { mediaType: 'image/png', base64 });
  }
});

test('anything but an image is rejected with a message that states its source and the problem', async (t) => {
  const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>';
  const png = await draw('red');
  const server = await useHttpsServer(t, (_request, response) => {
    response.writeHead(200, { 'content-type': 'image/png' }).end(svg);
  });
  const base = `https://pictures.test:${server.port}`;
  const form =
    'the data URI of an image_url must have the form data:<type>;base64,<data>, with padded base64 in the standard alphabet, without whitespace';
  const cases: Record<string, string> = {
    [`${base}/a.png?token=secret`]: `validation_failed: messages: the image at ${base}/a.png is not a PNG, JPEG, WebP or GIF.`,
    [`data:image/png;base64,${Buffer.from(svg).toString('base64')}`]:
      'validation_failed: messages: the image in a data URI is not a PNG, JPEG, WebP or GIF.',
    [`data:image/png;base64,${png.subarray(0, -20).toString('base64')}`]:
      'validation_failed: messages: the image in a data URI cannot be decoded: it is damaged or cut off.',
    [`data:image/png;base64,${png.toString('base64')}!`]: `validation_failed: messages: ${form}.`,
    [`data:image/png;base64,${png.toString('base64url')}-_`]: `validation_failed: messages: ${form}.`,
    [`data:image/png,${png.toString('base64')}`]: `validation_failed: messages: ${form}.`,
    'http://pictures.test/a.png':
      'unsafe_url: messages: The URL http://pictures.test/a.png is not https, so it is not fetched.',
  };
  for (const [url, failure] of Object.entries(cases)) {
    const loader = createMediaLoader(createSources(server.port), request);
    t.is(await failureOf(t, loader.loadImage(url, never())), failure);
  }
  const error = await t.throwsAsync(
    createMediaLoader(createSources(server.port), request).loadImage(`${base}/`, never()),
    { instanceOf: AppError },
  );
  t.deepEqual(error?.issues[0]?.loc, ['body', 'messages']);
  t.is(error?.status, 422);
});

test('after a failure nothing more is loaded, and running loads are aborted', async (t) => {
  const server = await useHttpsServer(t, (request, response) => {
    if (request.url === '/missing') response.writeHead(404).end();
  });
  const base = `https://pictures.test:${server.port}`;
  const loader = createMediaLoader(createSources(server.port), request);
  const slow = failureOf(t, loader.loadImage(`${base}/slow`, never()));
  await waitFor('the slow request', () => server.requests.length === 1);
  const failure = await failureOf(t, loader.loadImage(`${base}/missing`, never()));
  t.regex(failure, /^validation_failed: .* status 404\.$/);
  t.is(await slow, failure);
  await server.whenDisconnected();
  for (const path of ['missing', 'slow', 'another']) {
    t.is(await failureOf(t, loader.loadImage(`${base}/${path}`, never())), failure);
  }
  t.is(server.requests.length, 2);
});

test('aborting a load rejects it immediately with the abort reason, and later loads of the image still work', async (t) => {
  const png = await draw('red');
  const server = await useHttpsServer(t, (_request, response) => {
    if (server.requests.length > 1) response.end(png);
  });
  const url = `https://pictures.test:${server.port}/a.png`;
  const loader = createMediaLoader(createSources(server.port), request);
  const abort = new AbortController();
  const loading = t.throwsAsync(loader.loadImage(url, abort.signal));
  await waitFor('the request', () => server.requests.length === 1);
  const reason = new Error('the caller disconnected');
  abort.abort(reason);
  t.is(await loading, reason);
  await server.whenDisconnected();
  t.is(await t.throwsAsync(loader.loadImage(url, abort.signal)), reason);
  t.is((await loader.loadImage(url, never())).mediaType, 'image/png');
});

test('a request fetches four URLs at a time', async (t) => {
  const png = await draw('red');
  const waiting: (() => void)[] = [];
  const server = await useHttpsServer(t, (_request, response) => waiting.push(() => response.end(png)));
  const loader = createMediaLoader(createSources(server.port), request);
  const loads = Array.from({ length: 9 }, (_, i) =>
    loader.loadImage(`https://pictures.test:${server.port}/${i}`, never()),
  );
  for (let done = 0; done < 9; done++) {
    const expected = Math.min(done + 4, 9);
    await waitFor(`${expected} requests`, () => server.requests.length === expected);
    waiting.shift()!();
    await Promise.race(loads.slice(done, done + 1));
  }
  t.is((await Promise.all(loads)).length, 9);
});

test('a data URI may contain up to 20 MB', async (t) => {
  const loader = createMediaLoader(createFakeSources(0, 1), request);
  const largest = `data:image/png;base64,${Buffer.alloc(20_000_000).toString('base64')}`;
  t.is((await loader.loadImage(largest, never())).base64.length, largest.length - 22);
  const tooLarge = `data:image/png;base64,${Buffer.alloc(20_000_001).toString('base64')}`;
  t.is(
    await failureOf(t, loader.loadImage(tooLarge, never())),
    'validation_failed: messages: the data URI of an image_url contains more than 20 MB.',
  );
});

test('all images of a request together have a maximum of bytes and pixels, and a maximum number', async (t) => {
  const load = async (sources: MediaSources, count: number): Promise<void> => {
    const loader = createMediaLoader(sources, request);
    for (let i = 0; i < count; i++) await loader.loadImage(`https://pictures.test/${i}`, never());
  };
  await load(createFakeSources(20_000_000, 1), 3);
  t.is(
    await failureOf(t, load(createFakeSources(20_000_000, 1), 4)),
    'validation_failed: messages: the images exceed 60 MB in total.',
  );
  await load(createFakeSources(1, 50_000_000), 6);
  t.is(
    await failureOf(t, load(createFakeSources(1, 50_000_000), 7)),
    'validation_failed: messages: the images have more than 300 million pixels in total.',
  );
  await load(createFakeSources(1, 1), 500);
  t.is(
    await failureOf(t, load(createFakeSources(1, 1), 501)),
    'validation_failed: messages: the messages contain more than 500 images.',
  );
});

test('images of one request are checked one after another', async (t) => {
  let running = 0;
  const { fetchClient, memory } = createFakeSources(1, 1);
  const limiter = new EventTarget();
  const loader = createMediaLoader(
    {
      fetchClient,
      memory,
      async checkImage() {
        running += 1;
        t.is(running, 1);
        await once(limiter, 'go');
        running -= 1;
        return { mediaType: 'image/png', pixels: 1 };
      },
    },
    request,
  );
  const loads = [0, 1, 2].map((i) => loader.loadImage(`https://pictures.test/${i}`, never()));
  for (const load of loads) {
    await waitFor('a check', () => running === 1);
    limiter.dispatchEvent(new Event('go'));
    await load;
  }
});

test('memory for images is reserved before they are fetched, and released when their request ends', async (t) => {
  const sources = createFakeSources(3_000_000, 1);
  const { memory } = sources;
  const loader = createMediaLoader(sources, request);
  await loader.loadImage('https://pictures.test/1', never());
  await loader.loadImage('https://pictures.test/2', never());
  t.is(memory.held, 8_000_000);
  await loader.loadImage(`data:image/png;base64,${Buffer.alloc(9).toString('base64')}`, never());
  t.is(memory.held, 8_000_000, 'a data URI is part of the request itself');

  const otherMemory = memory.tryAcquire('other', 500_000_000)!;
  const waiting = createMediaLoader(sources, { ...request, accountId: 'third' });
  const loading = waiting.loadImage('https://pictures.test/1', never());
  const cancellation = new AbortController();
  const cancelled = waiting.loadImage('https://pictures.test/2', cancellation.signal);
  await waitFor('both loads to wait', () => memory.waiting === 2);
  const reason = new Error('the caller disconnected');
  cancellation.abort(reason);
  t.is(await t.throwsAsync(cancelled), reason);
  otherMemory.release();
  t.is((await loading).base64.length, 4_000_000);
  loader.release();
  waiting.release();
  t.is(memory.held, 0);

  const failing = createMediaLoader(
    { ...sources, fetchClient: { fetchBytes: () => Promise.reject(new AppError('unsafe_url')) } },
    request,
  );
  await failureOf(t, failing.loadImage('https://pictures.test/1', never()));
  failing.release();
  t.is(memory.held, 0);
});

test('memory for all links of a request is reserved together, before its deadline; memory that an image does not need is released when the image arrives', async (t) => {
  let fetched = 0;
  const { fetchClient, checkImage, memory } = createFakeSources(3_000_000, 1);
  const sources: MediaSources = {
    checkImage,
    memory,
    fetchClient: {
      fetchBytes: (...args) => {
        fetched += 1;
        return fetchClient.fetchBytes(...args);
      },
    },
  };
  const links = ['https://pictures.test/1', 'https://pictures.test/2'];
  // Enough memory is left for one of the two images.
  const otherMemory = memory.tryAcquire('other', 480_000_000)!;
  const late = createMediaLoader(sources, { ...request, deadlineAtMs: Date.now() });
  const refused = late.reserve(links, never());
  t.is((await t.throwsAsync(refused, { instanceOf: AppError }))?.code, 'deadline_exceeded');
  t.is(memory.held, 480_000_000);

  const loader = createMediaLoader(sources, request);
  const waiting = loader.reserve([...links, 'data:image/png;base64,AAAA'], never());
  await waitFor('the reservation to wait', () => memory.waiting === 1);
  t.is(memory.held, 480_000_000, 'the waiting reservation holds no memory');
  t.is(fetched, 0);
  otherMemory.release();
  await waiting;
  t.is(memory.held, 53_333_336);
  await loader.loadImage(links[0]!, never());
  t.is(memory.held, 4_000_000 + 26_666_668);
  await loader.loadImage(links[1]!, never());
  t.is(memory.held, 8_000_000);
  await loader.reserve(links, never());
  t.is(memory.held, 8_000_000, 'loaded images need no more memory');
  loader.release();
  t.is(memory.held, 0);
});

test('a request waits for memory until its deadline, without a separate limit', async (t) => {
  const sources = createFakeSources(1, 1);
  const waits: number[] = [];
  const memory = {
    acquire: (...[holder, amount, options]: Parameters<FairBudget['acquire']>) => {
      waits.push(options.waitMs);
      return sources.memory.acquire(holder, amount, options);
    },
  } as unknown as FairBudget;
  await createMediaLoader({ ...sources, memory }, request).loadImage('https://pictures.test/1', never());
  t.true(waits[0]! > 60_000 && waits.length === 1);
});
