import test from 'ava';
import type { ChunkedBody } from '../../../shared/responses/chunked-body.ts';
import { createFileLinks } from '../../../shared/responses/file-links.ts';
import { presentResponse, type SettledRequest } from '../../../shared/responses/present-response.ts';
import { encodeResult } from '../../../shared/work/replies/result.ts';

function readWhole(body: Buffer | ChunkedBody): unknown {
  if (Buffer.isBuffer(body)) return JSON.parse(body.toString());
  const chunks: Buffer[] = [];
  for (;;) {
    const target = Buffer.alloc(body.maxChunkBytes);
    const length = body.write(target);
    if (length === 0) return JSON.parse(Buffer.concat(chunks).toString());
    chunks.push(target.subarray(0, length));
  }
}

const settled: SettledRequest = {
  requestId: 'r',
  operation: 'chat.completions',
  model: 'm',
  format: null,
  receipt: { costNano: 250_000_000n, free: true },
};
const linkOf = createFileLinks('https://gateway.test', null);
const times = { created: 1_763_726_842, costNano: '1', free: false, durationMs: 2_500 };

test('the response of a chat is that of its worker, with what was charged', (t) => {
  const response = (cost: number) => ({ id: 'r', choices: [], usage: { cost_request: cost } });
  const bytes = Buffer.from(JSON.stringify(response(0.5)));
  t.deepEqual(readWhole(presentResponse(settled, bytes, linkOf)), response(0.25));
});

test('the response of an embedding request is written in its format, with what was charged', (t) => {
  const vector = Buffer.from(Float32Array.of(0.5, -1).buffer);
  const bytes = Buffer.concat(encodeResult({ ...times, promptTokens: 3, dimensions: 2 } as never, [vector]));
  const expected = (embedding: unknown) => ({
    id: 'r',
    created: times.created,
    object: 'list',
    model: 'm',
    data: [{ object: 'embedding', index: 0, embedding }],
    usage: { prompt_tokens: 3, total_tokens: 3, total_time: 2.5, cost_request: 0.25, free_request: true },
  });
  const embeddings = { ...settled, operation: 'embeddings' } as const;
  const inFloats = presentResponse({ ...embeddings, format: 'float' }, bytes, linkOf);
  t.deepEqual(readWhole(inFloats), expected([0.5, -1]));
  const inBase64 = presentResponse({ ...embeddings, format: 'base64' }, bytes, linkOf);
  t.deepEqual(readWhole(inBase64), expected(vector.toString('base64')));
});

test('the response of an image request has its images or their links, with what was charged', (t) => {
  const image = Buffer.from('image');
  const images = [
    { revisedPrompt: 'a', objectKey: null, byteLength: image.length },
    { revisedPrompt: null, objectKey: 'generated/2026/b.png', byteLength: 0 },
  ];
  const bytes = Buffer.concat(encodeResult({ ...times, tokens: {}, images } as never, [image]));
  for (const operation of ['images.generations', 'images.edits'] as const) {
    const body = readWhole(presentResponse({ ...settled, operation }, bytes, () => 'https://x/b.png')) as {
      data: object[];
      usage: object;
    };
    t.deepEqual(body.data, [
      { revised_prompt: 'a', b64_json: image.toString('base64'), url: null },
      { revised_prompt: null, b64_json: null, url: 'https://x/b.png' },
    ]);
    t.like(body.usage, { cost_request: 0.25, free_request: true });
  }
});

test("a stored file's link leads to the gateway, or to the bucket if that is public", (t) => {
  const link = linkOf('generated/2026/b.png');
  t.true(link.startsWith('https://gateway.test/files/'), link);
  const ofBucket = createFileLinks('https://gateway.test', 'https://cdn.test');
  t.is(ofBucket('generated/2026/b.png'), 'https://cdn.test/generated/2026/b.png');
});
