import test from 'ava';

import { toImageConfig } from '../../../../workers/upstreams/gemini/to-image-config.ts';

test('a size in pixels becomes the nearest aspect ratio that the vendor supports', (t) => {
  const aspectRatios = {
    '1024x1024': '1:1',
    '512x512': '1:1',
    '1536x1024': '3:2',
    '1024x1536': '2:3',
    '1792x1024': '16:9',
    '1024x1792': '9:16',
    '1200x900': '4:3',
    '900x1200': '3:4',
    '1120x896': '5:4',
    '896x1120': '4:5',
    '2560x1080': '21:9',
    '4000x1000': '21:9',
  };
  for (const [size, aspectRatio] of Object.entries(aspectRatios)) {
    t.deepEqual(toImageConfig(size, null), { aspectRatio }, size);
  }
});

test('a quality that matches an image size of the vendor is sent as that size; any other quality is ignored', (t) => {
  t.deepEqual(toImageConfig(null, '2k'), { imageSize: '2K' });
  t.deepEqual(toImageConfig('1024x1024', '4K'), { aspectRatio: '1:1', imageSize: '4K' });
  for (const [size, quality] of [
    [undefined, 'hd'],
    ['auto', 'standard'],
    ['0x10', null],
    ['10x0', ''],
  ]) {
    t.is(toImageConfig(size, quality), null);
  }
});
