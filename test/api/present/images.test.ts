import test from 'ava';
import { presentImages } from '../../../api/present/images.ts';

test('an answer has the bytes that JSON.stringify gives it', (t) => {
  const bytes = Buffer.from(Array.from({ length: 1_000 }, (_, i) => (i * 7) % 256));
  const prompt = 'кот в "шляпе"\n😺';
  const header = {
    created: 1_763_726_842,
    costNano: '1230000000',
    free: false,
    durationMs: 2_500,
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
    usage: { total_time: 2.5, cost_request: 1.23, free_request: false },
  };
  const answer = presentImages('id', header, bytes, (key) => `https://x/${key}`);
  t.is(answer.toString(), JSON.stringify(expected));
  t.is(
    presentImages('id', { ...header, images: [] }, bytes, String).toString(),
    JSON.stringify({ ...expected, data: [] }),
  );
});
