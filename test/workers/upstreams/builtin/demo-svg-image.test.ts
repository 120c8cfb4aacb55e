import { textOnlyFields } from '../../../../shared/work/queue/job-kinds.ts';
import sharp from 'sharp';
import test from 'ava';
import { createContext } from '../../../support/upstream-target.ts';
import { drawDemoImages } from '../../../../workers/upstreams/builtin/demo-svg-image.ts';
import { composePoster } from '../../../../workers/upstreams/builtin/poster/compose-poster.ts';
import { loadPosterFont } from '../../../../workers/upstreams/builtin/poster/poster-font.ts';
import { UpstreamError, type ImageCall } from '../../../../workers/upstreams/upstream.ts';
import { readThreadMs } from '../../../support/thread-clock.ts';

const font = loadPosterFont();
const context = createContext();

function makeCall(overrides: Partial<ImageCall> = {}): ImageCall {
  return {
    prompt: 'A lighthouse on a cliff at dusk',
    negativePrompt: null,
    ...textOnlyFields,
    n: 1,
    size: '256x256',
    isSizeRequested: true,
    quality: null,
    style: null,
    user: null,
    ...overrides,
  };
}

async function draw(overrides: Partial<ImageCall> = {}): Promise<Buffer> {
  const { images } = await drawDemoImages(makeCall(overrides), context);
  return images[0]?.bytes ?? Buffer.alloc(0);
}

function compose(prompt: string): string {
  return composePoster({ prompt, negativePrompt: null, style: null, index: 0, size: 512 }, font);
}

test('every supported size gives a PNG of that size', async (t) => {
  for (const size of ['256x256', '512x512', '1024x1024']) {
    const { images } = await drawDemoImages(makeCall({ size }), context);
    const [image] = images;
    const { format, width, height } = await sharp(image?.bytes).metadata();
    t.deepEqual([format, `${width}x${height}`], ['png', size]);
    t.is(image?.contentType, 'image/png');
    t.is(image?.revisedPrompt, null);
  }
});

test('the images of a call differ from each other, and repeating the call gives the same ones', async (t) => {
  const first = await drawDemoImages(makeCall({ n: 4 }), context);
  const second = await drawDemoImages(makeCall({ n: 4 }), context);
  t.deepEqual(first, second);
  t.is(new Set(first.images.map(({ bytes }) => bytes.toString('base64'))).size, 4);
});

test('prompt, negative prompt and style each change the image', async (t) => {
  const images = await Promise.all([
    draw(),
    draw({ prompt: 'A lighthouse on a cliff at dawn' }),
    draw({ negativePrompt: 'people' }),
    draw({ style: 'natural' }),
    draw({ style: 'vivid' }),
    draw({ style: 'cubist' }),
  ]);
  t.is(new Set(images.map((bytes) => bytes.toString('base64'))).size, images.length);
});

test('no part of the prompt becomes markup', (t) => {
  for (const prompt of [
    '"/><script>alert(1)</script>',
    '&lt;image href="file:///etc/passwd"/>',
    ']]>',
    'url(#x)',
  ]) {
    const svg = compose(prompt);
    t.notRegex(svg, /script|alert|image|href|passwd|file:|&|]]>|#x/);
    t.deepEqual(
      [...new Set([...svg.matchAll(/<(\w+)/g)].map(([, name]) => name))].filter(
        (name) => !/^(svg|g|rect|circle|path|defs|linearGradient|radialGradient|stop)$/.test(name ?? ''),
      ),
      [],
    );
  }
});

test('Latin, Cyrillic and Greek letters are drawn; unknown characters become boxes, and emoji are left out', (t) => {
  for (const word of ['Quick', 'Съешь', 'αβγ', 'Žluťoučký', 'Ґанок', '₽100…']) {
    t.is(font.shapeWord(word).length, word.length);
  }
  t.is(font.shapeWord('世界')[0], font.shapeWord('א')[0]);
  t.is(font.shapeWord('🎉👩‍🚀\ufe0f\u0000').length, 0);
  t.is(font.shapeWord('\ud800').length, 0);
});

test('any prompt gives an image', async (t) => {
  for (const prompt of [
    '',
    '🎉🎉🎉',
    '世界',
    '\ud800\udfff\udfff',
    'a\u0301\u0301\u0301',
    '\u0000\u0008',
    'עברית العربية ไทย',
  ]) {
    t.is((await sharp(await draw({ prompt })).metadata()).width, 256);
  }
});

test('long prompts are drawn smaller and end in an ellipsis, and the part that is not shown takes no time', async (t) => {
  const measure = (prompt: string): number => {
    const startedMs = readThreadMs();
    compose(prompt);
    return readThreadMs() - startedMs;
  };
  for (const unit of ['a wide harbour in winter ', 'x', '世', '🎉']) {
    const short = unit.repeat(Math.ceil(1200 / unit.length)).slice(0, 1200);
    const long = unit.repeat(Math.ceil(32_000 / unit.length));
    measure(short);
    const shortMs = Math.min(measure(short), measure(short), measure(short));
    const longMs = Math.min(measure(long), measure(long), measure(long));
    t.true(longMs < 3 * shortMs + 20, `${shortMs} ms, ${longMs} ms`);
    t.true(compose(long).length < 1_500_000);
    t.true((await draw({ prompt: long })).length > 0);
  }
});

test('the text contrasts strongly with the card behind it', async (t) => {
  for (const prompt of ['one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight']) {
    const svg = compose(prompt);
    const [, card, text] = /rx="34" fill="(#\w{6})"\/><path d="[^"]*" fill="(#\w{6})"/.exec(svg) ?? [];
    t.true(findContrast(card, text) > 7, `${card} ${text}`);
  }
});

function findContrast(a = '', b = ''): number {
  const [low = 0, high = 0] = [a, b]
    .map((color) => {
      const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
        const value = Number.parseInt(color.slice(at, at + 2), 16) / 255;
        return value <= 0.040_45 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
      });
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    })
    .sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}

test('an unsupported size or number of images is rejected', async (t) => {
  for (const overrides of [{ size: '300x300' }, { size: '1792x1024' }, { n: 0 }, { n: 5 }]) {
    const error = await t.throwsAsync(draw(overrides), { instanceOf: UpstreamError });
    t.is(error?.failure, 'rejected');
  }
});

test('aborting takes effect between two images', async (t) => {
  const controller = new AbortController();
  const reason = new Error('the caller disconnected');
  const drawing = drawDemoImages(makeCall({ n: 4, size: '1024x1024' }), {
    ...context,
    signal: controller.signal,
  });
  controller.abort(reason);
  t.is(await t.throwsAsync(drawing), reason);
});
