import test from 'ava';
import { FormReader } from '../../../../api/http/bodies/form-reader.ts';
import { AppError } from '../../../../shared/contract/errors.ts';
import { ImageEditRequest, imageFields } from '../../../../shared/contract/image-request.ts';
import { tinyPng } from '../../../../shared/contract/image-stream.ts';

/**
 * A form is read as the equivalent JSON request. Part order and chunking do not matter; invalid forms are rejected.
 */

const defaultBoundary = 'a-boundary';
const contract = { schema: ImageEditRequest, files: imageFields };
const png = Buffer.from(tinyPng, 'base64');
const pngUri = `data:image/png;base64,${tinyPng}`;

/** The headers of a text part. */
const text = (name: string): string => `Content-Disposition: form-data; name="${name}"`;
/** The headers of a file part. */
const file = (name: string, type = 'application/octet-stream'): string =>
  `${text(name)}; filename="a.png"\r\nContent-Type: ${type}`;

type Part = readonly [head: string, content: string | Buffer];

function write(parts: readonly Part[], boundary = defaultBoundary): Buffer {
  const pieces = parts.flatMap(([head, content]) => [
    Buffer.from(`--${boundary}\r\n${head}\r\n\r\n`),
    Buffer.from(content as string),
    Buffer.from('\r\n'),
  ]);
  return Buffer.concat([...pieces, Buffer.from(`--${boundary}--\r\n`)]);
}

async function read(
  form: Buffer,
  { boundary = defaultBoundary, chunkBytes = 65_536 } = {},
): Promise<unknown> {
  const reader = new FormReader(`multipart/form-data; boundary=${boundary}`, contract);
  for (let at = 0; at < form.length; at += chunkBytes) await reader.push(form.subarray(at, at + chunkBytes));
  return await reader.end();
}

const usual: readonly Part[] = [
  [text('prompt'), 'ein Häuschen'],
  [file('image[]'), png],
  [text('n'), '2'],
  [file('image[]', 'image/webp'), png],
  [text('stream'), 'false'],
  [file('mask'), png],
  [text('model'), 'm'],
];

const usualBody = {
  image: [pngUri, pngUri],
  mask: pngUri,
  model: 'm',
  n: 2,
  prompt: 'ein Häuschen',
  stream: false,
};

test('files become data URIs typed by their bytes, and text fields get the types in the schema', async (t) => {
  t.deepEqual(await read(write(usual)), usualBody);
  t.deepEqual(await read(write([[file('image'), png]])), { image: pngUri });
  t.deepEqual(await read(write([[file('image', 'text/html; charset=x'), '<svg>']])), {
    image: `data:text/html;base64,${Buffer.from('<svg>').toString('base64')}`,
  });
});

test('image files are accepted under every image field name, and unknown fields pass through unchanged', async (t) => {
  const names = ['image', 'image_url[]', 'images[0][image_url]', 'mask[image_url]', 'markup'];
  t.deepEqual(await read(write(names.map((name): Part => [file(name), png]))), {
    image: pngUri,
    image_url: [pngUri],
    images: [{ image_url: pngUri }],
    markup: pngUri,
    mask: { image_url: pngUri },
  });
});

test('part order, the boundary and chunking make no difference', async (t) => {
  const expected = JSON.stringify(await read(write(usual)));
  t.is(JSON.stringify(await read(write(usual.toReversed()))), expected);
  t.is(JSON.stringify(await read(write(usual, 'other'), { boundary: 'other' })), expected);
  for (const chunkBytes of [1, 2, 3, 7, 64, 101])
    t.is(JSON.stringify(await read(write(usual), { chunkBytes })), expected, String(chunkBytes));
});

test('list order is preserved', async (t) => {
  const images = ['a', 'b', 'c'].map((name): Part => [text('image_url[]'), name]);
  t.deepEqual(await read(write(images)), { image_url: ['a', 'b', 'c'] });
});

for (const [what, parts, body] of [
  [
    'a field that is sent twice',
    [
      ['image_url', 'a'],
      ['image_url', 'b'],
    ],
    { image_url: ['a', 'b'] },
  ],
  ['a one-item list', [['image[]', 'a']], { image: ['a'] }],
  ['an object', [['mask[image_url]', 'a']], { mask: { image_url: 'a' } }],
  [
    'list objects, ordered by index',
    [
      ['images[1][image_url]', 'b'],
      ['images[0][image_url]', 'a'],
      ['images[0][file_id]', 'f'],
    ],
    { images: [{ image_url: 'a', file_id: 'f' }, { image_url: 'b' }] },
  ],
  [
    'objects without an index',
    [
      ['images[][image_url]', 'a'],
      ['images[][image_url]', 'b'],
    ],
    {
      images: [{ image_url: 'a' }, { image_url: 'b' }],
    },
  ],
  [
    'a number field with a non-numeric value',
    [
      ['n', 'two'],
      ['output_compression', '1e9'],
    ],
    { n: 'two', output_compression: '1e9' },
  ],
  ['an unknown field', [['__proto__', 'x']], JSON.parse('{"__proto__":"x"}') as object],
  ['an empty form', [], {}],
] as const) {
  test(`${what} parses to the same value as in JSON`, async (t) => {
    const form = write(parts.map(([name, value]): Part => [text(name), value]));
    t.is(JSON.stringify(await read(form)), JSON.stringify(body));
  });
}

const whole = write(usual);
const many = Array.from({ length: 65 }, (_, i): Part => [text(`field-${i}`), 'x']);

for (const [what, form, expected] of [
  ['a form truncated inside a file', whole.subarray(0, 300), /not a complete multipart\/form-data form/],
  [
    'a form without its closing boundary',
    whole.subarray(0, whole.length - 30),
    /not a complete multipart\/form-data form/,
  ],
  ['text instead of a form', Buffer.from('{"model": "m"}'), /not a complete multipart\/form-data form/],
  ['a form with too many parts', write(many), /more than 64 parts/],
  ['a part without a name', write([['Content-Disposition: form-data', 'x']]), /part without a name/],
  ['a name nested too deeply', write([[text('a[b][c][d]'), 'x']]), /a part named a\[b\]/],
  ['a name of a thousand characters', write([[text('a'.repeat(1_000)), 'x']]), /a part named aaa/],
  [
    'a field sent both plain and with a key',
    write([
      [text('mask'), 'x'],
      [text('mask[image_url]'), 'y'],
    ]),
    /^mask: /,
  ],
  [
    'a prompt that is a file',
    write([[file('prompt', 'text/plain'), 'a cat']]),
    /^prompt: was sent as a file/,
  ],
  ['an option that is a file', write([[file('style'), png]]), /^style: was sent as a file/],
  [
    'text that is not UTF-8',
    write([[text('prompt'), Buffer.from([0xc3, 0x28])]]),
    /^prompt: is not valid UTF-8/,
  ],
  [
    'a part with a transfer encoding',
    write([[`${file('image')}\r\nContent-Transfer-Encoding: base64`, tinyPng]]),
    /Content-Transfer-Encoding/,
  ],
] as const) {
  test(`${what} is rejected with a helpful message`, async (t) => {
    const error = await t.throwsAsync(read(form), { instanceOf: AppError });
    t.is(error?.status, 422);
    t.regex(error?.message ?? '', expected);
    t.is(error?.issues[0]?.loc[0], 'body');
  });
}

test('a Content-Type without a boundary is rejected before the body is read', (t) => {
  const error = t.throws(() => new FormReader('multipart/form-data', contract), {
    instanceOf: AppError,
  });
  t.is(error?.status, 422);
  t.regex(error?.message ?? '', /no form boundary/);
});

test('a form that arrives in tiny chunks is parsed in large pieces', async (t) => {
  const reader = new FormReader(`multipart/form-data; boundary=${defaultBoundary}`, contract);
  const form = write([[file('image'), Buffer.alloc(300_000)]]);
  let pieces = 0;
  for (let at = 0; at < form.length; at += 3) {
    const parsed = reader.push(form.subarray(at, at + 3));
    if (parsed !== undefined) pieces += 1;
    await parsed;
  }
  t.true(pieces <= form.length / 16_384, String(pieces));
  t.like(await reader.end(), { image: `data:application/octet-stream;base64,${'A'.repeat(400_000)}` });
});

test('memory for a form is reserved as its bytes arrive', async (t) => {
  const reader = new FormReader(`multipart/form-data; boundary=${defaultBoundary}`, contract);
  const form = write([[file('image'), Buffer.alloc(300_000)]]);
  await reader.push(form.subarray(0, 150_000));
  t.true(reader.extraBytes >= 50_000 && reader.extraBytes < 60_000, String(reader.extraBytes));
});

test('a form without parts is read to its end, whatever follows its last boundary', async (t) => {
  const last = `--\r\n--${defaultBoundary}`;
  for (const form of [`--${defaultBoundary}--\r\n`, ...[1, 2, 3, 1_000].map((n) => last.repeat(n + 1))]) {
    for (const chunkBytes of [7, 65_536]) t.deepEqual(await read(Buffer.from(form), { chunkBytes }), {});
  }
});
