import test from 'ava';
import sharp from 'sharp';

import { UpstreamError } from '../../../../workers/upstreams/upstream.ts';
import { fromImageResponse } from '../../../../workers/upstreams/openai/from-image-response.ts';

const dot = sharp({ create: { width: 1, height: 1, channels: 3, background: 'red' } });

function read(data: object[], n = 1): ReturnType<typeof fromImageResponse> {
  return fromImageResponse({ created: 1, data }, n, null, 'account');
}

test('the type of an image is determined by its bytes', async (t) => {
  for (const format of ['png', 'jpeg', 'webp'] as const) {
    const bytes = await dot.clone().toFormat(format).toBuffer();
    const { images } = await read([{ b64_json: bytes.toString('base64'), revised_prompt: 'a dot' }]);
    t.true(images[0]?.bytes.equals(bytes));
    t.is(images[0]?.contentType, `image/${format}`);
    t.is(images[0]?.revisedPrompt, 'a dot');
  }
});

test('no more images are passed on than requested', async (t) => {
  const item = { b64_json: (await dot.clone().png().toBuffer()).toString('base64') };
  t.is((await read([item, item, item], 2)).images.length, 2);
  t.is((await read([item], 2)).images.length, 1);
  t.is((await read([item])).images[0]?.revisedPrompt, null);
});

test('readable images are passed on, with the error of an unreadable one', async (t) => {
  const good = { b64_json: (await dot.clone().png().toBuffer()).toString('base64') };
  const unreadable: [unknown, RegExp][] = [
    [{ url: 'https://images.example/1.png' }, /a URL instead of base64/],
    [{ b64_json: Buffer.from('<svg/>').toString('base64') }, /neither PNG, JPEG nor WebP/],
    [null, /without data/],
  ];
  for (const [item, reason] of unreadable) {
    const { images, shortfallReason } = await read([item as object, good], 2);
    t.is(images.length, 1);
    t.regex(shortfallReason?.message ?? '', reason);
  }
  t.is((await read([good, good], 2)).shortfallReason, undefined);
});

test('a link, missing data, another format and no images are distinct errors', async (t) => {
  const failures: [object[], RegExp][] = [
    [[{ url: 'https://images.example/1.png' }], /a URL instead of base64/],
    [[{}], /without data/],
    [[{ b64_json: Buffer.from('GIF89a').toString('base64') }], /neither PNG, JPEG nor WebP/],
    [[], /no images/],
  ];
  for (const [data, message] of failures) {
    await t.throwsAsync(read(data), { instanceOf: UpstreamError, message });
  }
});
