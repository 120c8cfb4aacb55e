import sharp from 'sharp';
import test from 'ava';

import { createImageEditor } from '../../../../workers/upstreams/builtin/demo-image-edit.ts';
import { drawDemoImages } from '../../../../workers/upstreams/builtin/demo-svg-image.ts';
import { textOnlyFields } from '../../../../shared/work/queue/job-kinds.ts';
import {
  type ImageCall,
  type InputImage,
  type PartialImage,
  UpstreamError,
} from '../../../../workers/upstreams/upstream.ts';
import { createContext, createImageCall } from '../../../support/upstream-target.ts';

const editDemoImages = createImageEditor();
const [red, green, blue, white] = [
  [255, 0, 0, 255],
  [0, 255, 0, 255],
  [0, 0, 255, 255],
  [255, 255, 255, 255],
] as const;
type Color = readonly [number, number, number, number];

/** An image whose four quarters have these colours: top left, top right, bottom left, bottom right. */
async function paint(width: number, height: number, quarters: readonly Color[]): Promise<InputImage> {
  const data = Buffer.alloc(width * height * 4);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const quarter = (y < height / 2 ? 0 : 2) + (x < width / 2 ? 0 : 1);
      data.set(quarters[quarter] ?? white, (y * width + x) * 4);
    }
  }
  const bytes = await sharp(data, { raw: { width, height, channels: 4 } })
    .png()
    .toBuffer();
  return { bytes, contentType: 'image/png', width, height };
}

const source = await paint(40, 20, [red, green, blue, white]);

interface Edited {
  readonly size: string;
  /** The colour at a position, given as fractions of the width and of the height. */
  readonly at: (x: number, y: number) => number[];
}

async function inspect(bytes: Buffer): Promise<Edited> {
  const { data, info } = await sharp(bytes).ensureAlpha().raw().toBuffer({ resolveWithObject: true });
  const { width, height } = info;
  const at = (x: number, y: number): number[] => {
    const offset = (Math.floor(y * height) * width + Math.floor(x * width)) * 4;
    return [...data.subarray(offset, offset + 4)];
  };
  return { size: `${width}x${height}`, at };
}

async function edit(prompt: string, more: Partial<ImageCall> = {}): Promise<Edited> {
  const call = createImageCall({ prompt, size: 'auto', inputs: [source], ...more });
  const { images } = await editDemoImages(call, createContext());
  return await inspect(images[0]!.bytes);
}

test('an image is resized to the pixels or the percentage in the prompt', async (t) => {
  for (const [prompt, size] of [
    ['resize to 30x60', '30x60'],
    ['scale to 50%', '20x10'],
    ['enlarge by 100%', '80x40'],
  ] as const) {
    const edited = await edit(prompt);
    t.is(edited.size, size, prompt);
    t.deepEqual(
      [edited.at(0.1, 0.1), edited.at(0.9, 0.1), edited.at(0.1, 0.9)],
      [[...red], [...green], [...blue]],
    );
  }
});

test('an image is rotated as the prompt specifies', async (t) => {
  const right = await edit('rotate right');
  t.is(right.size, '20x40');
  t.deepEqual([right.at(0.1, 0.1), right.at(0.9, 0.1)], [[...blue], [...red]]);
  const left = await edit('rotate 90 degrees counterclockwise');
  t.deepEqual([left.at(0.1, 0.1), left.at(0.9, 0.1)], [[...green], [...white]]);
  const slanted = await edit('rotate 45');
  t.is(slanted.at(0.02, 0.02)[3], 0, 'the new corners are transparent');
});

test('grayscale removes colour, and blur softens edges', async (t) => {
  const gray = await edit('make it grayscale');
  const [r, g, b] = gray.at(0.1, 0.1);
  t.true(r === g && g === b && r! > 0 && r! < 255);
  const blurred = await edit('blur by 3');
  const [left, right] = [blurred.at(0.48, 0.1), blurred.at(0.52, 0.1)];
  t.true(left[0]! < 250 && left[1]! > 5 && right[0]! > 5, JSON.stringify([left, right]));
  t.is(blurred.size, '40x20');
});

test('a caption is drawn along the bottom; a prompt without an edit is itself a caption', async (t) => {
  const large = await paint(200, 100, [red, red, red, red]);
  const whole = await edit('a harbour in winter', { inputs: [large] });
  const captioned = await edit('caption "a harbour in winter"', { inputs: [large] });
  t.deepEqual(whole.at(0.5, 0.1), [...red], 'the image is still there');
  t.deepEqual(whole.at(0.99, 0.99), [0x14, 0x21, 0x3d, 255], 'with a band below');
  const row = (edited: Edited): number[][] => Array.from({ length: 200 }, (_, x) => edited.at(x / 200, 0.9));
  t.true(
    row(whole).some(([r]) => r! > 200),
    'with text on it',
  );
  t.deepEqual(row(whole), row(captioned));
  await t.notThrowsAsync(edit('a very long caption '.repeat(100), { inputs: [await paint(1, 1, [red])] }));
});

test('edits are applied in the order of the prompt', async (t) => {
  t.is((await edit('resize to 10x30, then rotate right')).size, '30x10');
  t.is((await edit('rotate right, then resize to 10x30')).size, '10x30');
});

test('a result has the size set by the caller, otherwise that of the prompt or the default, and shows the whole image', async (t) => {
  const gray = await edit('grayscale', { size: '256x256' });
  t.is(gray.size, '256x256');
  t.is(gray.at(0.5, 0.05)[3], 0, 'a wide image has space above');
  t.is(gray.at(0.01, 0.5)[3], 255, 'and none at its sides');
  t.is((await edit('resize to 20x10', { size: '512x512' })).size, '20x10');
  t.is((await edit('scale to 50%', { size: '512x512' })).size, '20x10');
  t.is((await edit('resize to 20x10', { size: '512x512', isSizeRequested: true })).size, '512x512');
});

test('with a mask, only the area where the mask is transparent changes', async (t) => {
  const hole = await paint(40, 20, [[0, 0, 0, 0], white, white, white]);
  const masked = await edit('grayscale', { mask: hole });
  const [r, g] = masked.at(0.1, 0.1);
  t.true(r === g && r! < 255, 'the hole is grey');
  t.deepEqual(
    [masked.at(0.9, 0.1), masked.at(0.1, 0.9), masked.at(0.9, 0.9)],
    [[...green], [...blue], [...white]],
  );
  const turned = await edit('rotate right', { mask: hole });
  t.is(turned.size, '40x20', 'the area outside the mask keeps its position');
});

test('several images are edited side by side, and a mask applies to the first', async (t) => {
  const second = await paint(20, 20, [green, green, green, green]);
  const inputs = [source, second];
  const joined = await edit('rotate 180', { inputs });
  t.is(joined.size, '60x20');
  t.deepEqual(joined.at(0.1, 0.5), [...green]);
  t.deepEqual(joined.at(0.99, 0.99), [...red]);
  const hole = await paint(40, 20, [
    [0, 0, 0, 0],
    [0, 0, 0, 0],
    [0, 0, 0, 0],
    [0, 0, 0, 0],
  ]);
  const masked = await edit('grayscale', { inputs, mask: hole });
  t.deepEqual(masked.at(0.9, 0.5), [...green]);
  t.notDeepEqual(masked.at(0.05, 0.1), [...red]);
});

test('n variants are n different images, and repeating the call gives the same ones', async (t) => {
  const call = createImageCall({ prompt: 'grayscale', size: 'auto', inputs: [source], n: 4 });
  const first = await editDemoImages(call, createContext());
  t.deepEqual(first, await editDemoImages(call, createContext()));
  t.is(new Set(first.images.map(({ bytes }) => bytes.toString('base64'))).size, 4);
});

test('the result has the requested format', async (t) => {
  for (const outputFormat of ['png', 'jpeg', 'webp'] as const) {
    const options = { ...textOnlyFields.options, outputFormat, outputCompression: 50 };
    const call = createImageCall({ prompt: 'blur', size: '256x256', inputs: [source], options });
    const [image] = (await editDemoImages(call, createContext())).images;
    t.is(image?.contentType, `image/${outputFormat}`);
    t.is((await sharp(image?.bytes).metadata()).format, outputFormat);
  }
});

test('both models send the requested number of previews, from coarse to fine', async (t) => {
  for (const make of [editDemoImages, drawDemoImages]) {
    const previews: PartialImage[] = [];
    const onPartial = async (preview: PartialImage): Promise<void> => {
      previews.push(preview);
    };
    const inputs = make === editDemoImages ? [source] : [];
    const call = createImageCall({
      prompt: 'rotate 30',
      size: '256x256',
      inputs,
      partialImages: 3,
      onPartial,
    });
    const { images } = await make(call, createContext());
    t.deepEqual(
      previews.map(({ index }) => index),
      [0, 1, 2],
    );
    const whole = await sharp(images[0]?.bytes).ensureAlpha().raw().toBuffer();
    const distances = await Promise.all(
      previews.map(async ({ bytes }) => {
        const pixels = await sharp(bytes).ensureAlpha().raw().toBuffer();
        return pixels.reduce((sum, value, i) => sum + Math.abs(value - (whole[i] ?? 0)), 0);
      }),
    );
    t.deepEqual(
      distances,
      distances.toSorted((a, b) => b - a),
    );
    previews.length = 0;
    await make({ ...call, partialImages: 0 }, createContext());
    await make({ ...call, partialImages: null }, createContext());
    t.is(previews.length, 0);
  }
});

test('an impossible edit is rejected with the reason', async (t) => {
  const cases: [Partial<ImageCall>, RegExp][] = [
    [{ inputs: [] }, /send at least one in image_url/],
    [{ n: 5 }, /n must be from 1 to 4/],
    [{ size: '300x300' }, /size must be one of/],
    [{ prompt: 'resize to 9000x9000' }, /9000x9000; each side must be from 1 to 2048/],
    [{ prompt: 'scale to 0%' }, /each side must be from 1/],
    [{ prompt: 'blur; '.repeat(11) }, /has 11 edits; the maximum is 10/],
  ];
  for (const [more, message] of cases) {
    const error = await t.throwsAsync(edit('blur', more), { instanceOf: UpstreamError, message });
    t.is(error?.failure, 'rejected');
  }
  const words = createImageCall({ size: '256x256', inputs: [source] });
  await t.throwsAsync(drawDemoImages(words, createContext()), { message: /from text only/ });
});

test('the edit of a large image stays within the maximum side length', async (t) => {
  const bytes = await sharp({ create: { width: 5_000, height: 100, channels: 3, background: 'red' } })
    .png()
    .toBuffer();
  const wide: InputImage = { bytes, contentType: 'image/png', width: 5_000, height: 100 };
  t.is((await edit('grayscale', { inputs: [wide] })).size, '2048x41');
  t.is(
    (await edit('rotate 45', { inputs: [wide] })).size.split('x').every((side) => Number(side) <= 2_048),
    true,
  );
});

test('a cancelled edit fails with the reason', async (t) => {
  const cancellation = new AbortController();
  const reason = new Error('the caller disconnected');
  const call = createImageCall({ prompt: 'blur; rotate 10; blur', size: 'auto', inputs: [source], n: 4 });
  const editing = editDemoImages(call, createContext({ signal: cancellation.signal }));
  cancellation.abort(reason);
  t.is(await t.throwsAsync(editing), reason);
});

test('a caller that reads previews slowly does not delay the edits of others', async (t) => {
  let release: () => void = () => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const call = createImageCall({ prompt: 'blur', size: 'auto', inputs: [source] });
  const slow = Array.from({ length: 4 }, (_, index) =>
    editDemoImages(
      { ...call, partialImages: 1, onPartial: () => released },
      createContext({ accountId: `slow-${index}` }),
    ),
  );
  t.is((await editDemoImages(call, createContext({ accountId: 'other' }))).images.length, 1);
  release();
  t.is((await Promise.all(slow)).length, 4);
});
