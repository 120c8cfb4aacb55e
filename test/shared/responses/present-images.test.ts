import { randomBytes } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import { presentImages } from '../../../shared/responses/present-images.ts';
import type { ChunkedBody } from '../../../shared/responses/chunked-body.ts';

/** Reads a body to its end, and checks its declared length and its maximum chunk size. */
function readWhole(t: ExecutionContext, body: ChunkedBody): string {
  const chunks: Buffer[] = [];
  for (;;) {
    const target = Buffer.alloc(body.maxChunkBytes);
    const length = body.write(target);
    if (length === 0) break;
    chunks.push(target.subarray(0, length));
  }
  const whole = Buffer.concat(chunks);
  t.is(body.byteLength, whole.length);
  return whole.toString();
}

test('a response has the same bytes as one from JSON.stringify', (t) => {
  const bytes = Buffer.from(Array.from({ length: 1_000 }, (_, i) => (i * 7) % 256));
  const prompt = 'кот в "шляпе"\n😺';
  const header = {
    created: 1_763_726_842,
    costNano: '1230000000',
    free: false,
    durationMs: 2_500,
    tokens: { inputTokens: 50, outputTokens: 4_000, imageTokens: 30 },
    images: [
      { revisedPrompt: prompt, objectKey: null, byteLength: 301 },
      { revisedPrompt: null, objectKey: 'a"b.png', byteLength: 0 },
      { revisedPrompt: null, objectKey: null, byteLength: 699 },
    ],
  };
  const expected = {
    id: 'id',
    created: 1_763_726_842,
    data: [
      { revised_prompt: prompt, b64_json: bytes.toString('base64', 0, 301), url: null },
      { revised_prompt: null, b64_json: null, url: 'https://x/a"b.png' },
      { revised_prompt: null, b64_json: bytes.toString('base64', 301), url: null },
    ],
    usage: {
      input_tokens: 50,
      output_tokens: 4_000,
      total_tokens: 4_050,
      input_tokens_details: { text_tokens: 20, image_tokens: 30 },
      total_time: 2.5,
      cost_request: 1.23,
      free_request: false,
    },
  };
  const response = presentImages('id', header, bytes, (key) => `https://x/${key}`);
  t.is(readWhole(t, response), JSON.stringify(expected));
  t.is(
    readWhole(t, presentImages('id', { ...header, images: [] }, bytes, String)),
    JSON.stringify({ ...expected, data: [] }),
  );
});

test('large images are sent in chunks far smaller than an image, and their base64 is unchanged', (t) => {
  const sizes = [1_000_000, 192 * 1024, 192 * 1024 + 1];
  const images = sizes.map((byteLength) => ({ revisedPrompt: null, objectKey: null, byteLength }));
  const tokens = {};
  const header = { created: 1, costNano: '1', free: false, durationMs: 1, tokens, images };
  const bytes = randomBytes(sizes.reduce((sum, size) => sum + size, 0));
  const body = presentImages('id', header, bytes, String);
  t.true(body.maxChunkBytes < 300_000);
  const { data } = JSON.parse(readWhole(t, body)) as { data: { b64_json: string }[] };
  t.true(Buffer.concat(data.map((one) => Buffer.from(one.b64_json, 'base64'))).equals(bytes));
});
