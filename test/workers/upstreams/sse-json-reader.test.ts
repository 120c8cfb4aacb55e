import test from 'ava';

import type { HttpResponse } from '../../../workers/upstreams/http-client.ts';
import { SseJsonReader } from '../../../workers/upstreams/sse-json-reader.ts';
import { UpstreamError } from '../../../workers/upstreams/upstream.ts';

function createReader(chunks: readonly Buffer[], maxEventBytes = 1_000): SseJsonReader {
  const remaining = chunks.toReversed();
  const response: Pick<HttpResponse, 'next'> = { next: () => Promise.resolve(remaining.pop() ?? null) };
  return new SseJsonReader(response as HttpResponse, maxEventBytes, 'account');
}

async function readAll(chunks: readonly Buffer[], maxEventBytes?: number): Promise<unknown[]> {
  const reader = createReader(chunks, maxEventBytes);
  const events: unknown[] = [];
  for (let event = await reader.next(); event !== null; event = await reader.next()) {
    events.push([event.name, event.data]);
  }
  return events;
}

const stream = [
  '\ufeff: hello\n',
  'event: first\ndata: {"a": 1}\n\n',
  'id: 5\r\ndata:{"b":\r\ndata: "é"}\r\n\r\n',
  ': keep-alive\n\nevent: empty\n\ndata: {}\n\n',
  'a line without a colon\nevent:third\rdata: {"c": [1, 2]}\r\r',
  'data: [DONE]\n\n',
].join('');
const events = [
  ['first', { a: 1 }],
  ['', { b: 'é' }],
  ['', {}],
  ['third', { c: [1, 2] }],
];

test('a stream has the same events for any split of its bytes', async (t) => {
  const bytes = Buffer.from(stream);
  t.deepEqual(await readAll([bytes]), events);
  for (const size of [1, 2, 3, 7]) {
    const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
      bytes.subarray(index * size, (index + 1) * size),
    );
    t.deepEqual(await readAll(pieces), events, `chunks of ${size} bytes`);
  }
  for (let at = 0; at <= bytes.length; at += 1) {
    t.deepEqual(await readAll([bytes.subarray(0, at), bytes.subarray(at)]), events, `cut at ${at}`);
  }
});

test('the last event is complete even without the blank line after it', async (t) => {
  t.deepEqual(await readAll([Buffer.from('data: {"a": 1}')]), [['', { a: 1 }]]);
  t.deepEqual(await readAll([]), []);
});

test('an event that is not a JSON object, is cut off or is too long is an error', async (t) => {
  for (const text of ['data: [1]\n\n', 'data: {"a": \n\n', 'data: {"a": 1']) {
    await t.throwsAsync(readAll([Buffer.from(text)]), {
      instanceOf: UpstreamError,
      message: 'the upstream sent an event that is not a JSON object',
    });
  }
  const long = Buffer.from(`data: {"a": "${'x'.repeat(1_000)}"}\n\n`);
  await t.throwsAsync(readAll([long]), {
    instanceOf: UpstreamError,
    message: 'the upstream sent an event of more than 1000 bytes',
  });
  const pieces = Array.from({ length: 200 }, () => Buffer.from('data: "1234567890"\n'));
  await t.throwsAsync(readAll(pieces), { message: /more than 1000 bytes/ }, 'many lines of one event');
});

test('an event of several megabytes and long ignored lines can be read in small chunks', async (t) => {
  const value = 'aGVsbG8h'.repeat(500_000);
  const bytes = Buffer.from(
    `event: ${'x'.repeat(100_000)}\n\nevent: image\ndata: {"b64_json": "${value}"}\n\n`,
  );
  const chunks = Array.from({ length: Math.ceil(bytes.length / 1_400) }, (_, index) =>
    bytes.subarray(index * 1_400, (index + 1) * 1_400),
  );
  const [[name, data]] = (await readAll(chunks, 8_000_000)) as [[string, { b64_json: string }]];
  t.is(name, 'image');
  t.true(data.b64_json === value);
});
