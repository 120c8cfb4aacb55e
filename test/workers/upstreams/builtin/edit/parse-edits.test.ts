import test from 'ava';

import { type ImageEdit, parseEdits } from '../../../../../workers/upstreams/builtin/edit/parse-edits.ts';
import { readThreadMs } from '../../../../support/thread-clock.ts';

const rotate = (degrees: number): ImageEdit => ({ kind: 'rotate', degrees });
const caption = (text: string): ImageEdit => ({ kind: 'caption', text });
const blur = (sigma: number): ImageEdit => ({ kind: 'blur', sigma });
const scale = (percent: number): ImageEdit => ({ kind: 'scale', percent });
const resize = (width: number, height: number): ImageEdit => ({ kind: 'resize', width, height });
const grayscale: ImageEdit = { kind: 'grayscale' };

const prompts: readonly (readonly [string, readonly ImageEdit[]])[] = [
  ['Resize to 200x100', [resize(200, 100)]],
  ['please resize the image to 64 × 32 pixels', [resize(64, 32)]],
  ['scale it to 50%', [scale(50)]],
  ['shrink by 20 %', [scale(80)]],
  ['shrink to 20 percent', [scale(20)]],
  ['enlarge the picture by 50%', [scale(150)]],
  ['resize to half the size', [scale(50)]],
  ['rotate 90', [rotate(90)]],
  ['Rotate the image by 45 degrees', [rotate(45)]],
  ['rotate left', [rotate(-90)]],
  ['turn it to the right', [rotate(90)]],
  ['rotate 30° counterclockwise', [rotate(-30)]],
  ['rotate clockwise by 12.5 degrees', [rotate(12.5)]],
  ['turn the photo upside down', [rotate(180)]],
  ['make it grayscale', [grayscale]],
  ['turn it black and white', [grayscale]],
  ['Grey-scale, please', [grayscale]],
  ['blur', [blur(5)]],
  ['slightly blur it', [blur(2)]],
  ['blur the image strongly', [blur(15)]],
  ['blur with sigma 8', [blur(8)]],
  ['blur 0', [blur(0.3)]],
  ['blur by 900', [blur(100)]],
  ['caption "Hello, world"', [caption('Hello, world')]],
  ['add the text “rotate 90”', [caption('rotate 90')]],
  ['caption: blur me, then rotate left', [caption('blur me'), rotate(-90)]],
  ['write Привет', [caption('Привет')]],
  [
    'rotate 90 degrees, make it grayscale, blur it slightly and caption it "Done"',
    [rotate(90), grayscale, blur(2), caption('Done')],
  ],
  ['blur; then resize to 10x20; then rotate right', [blur(5), resize(10, 20), rotate(90)]],
  ['grayscale\nrotate 180', [grayscale, rotate(180)]],
  ['a lighthouse at dusk', []],
  ['caption ""', []],
  ['rotate', []],
  ['', []],
];

for (const [prompt, edits] of prompts) {
  test(`${JSON.stringify(prompt)} is parsed into its edits`, (t) => {
    t.deepEqual(parseEdits(prompt), edits);
  });
}

test('long prompts that resemble edits but contain none are parsed quickly', (t) => {
  for (const unit of [
    'rotate the ',
    'caption the text ',
    'resize ',
    'blur it with ',
    '  ',
    'caption "',
    "caption '; ",
  ]) {
    const startedMs = readThreadMs();
    parseEdits(unit.repeat(30_000));
    t.true(readThreadMs() - startedMs < 500, unit);
  }
});
