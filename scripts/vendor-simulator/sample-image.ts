import type { Faults } from './faults.ts';
import { makePng, makePngBomb } from './tiny-png.ts';

export type ImageFormat = 'png' | 'jpeg' | 'webp';

const side = 64;
/** Blue images of 16 by 16 pixels. Unlike PNG, these formats cannot be written in a few lines. */
const samples: Readonly<Record<Exclude<ImageFormat, 'png'>, string>> = {
  jpeg: '/9j/2wBDABsSFBcUERsXFhceHBsgKEIrKCUlKFE6PTBCYFVlZF9VXVtqeJmBanGQc1tdhbWGkJ6jq62rZ4C8ybqmx5moq6T/2wBDARweHigjKE4rK06kbl1upKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKT/wAARCAAQABADASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAT/xAAUEAEAAAAAAAAAAAAAAAAAAAAA/8QAFAEBAAAAAAAAAAAAAAAAAAAABf/EABQRAQAAAAAAAAAAAAAAAAAAAAD/2gAMAwEAAhEDEQA/AJQCIx//2Q==',
  webp: 'UklGRjQAAABXRUJQVlA4ICgAAACQAQCdASoQABAABABoJaACdLoAA5gA/uX6P5mtjZ6IH/cdgbrvEAAA',
};

/** Returns an image in base64, or the faulty content that replaces it. */
export function makeSampleImage(
  format: ImageFormat,
  color: readonly [number, number, number],
  fault: Faults['image'],
  { width = side, height = side } = {},
): string {
  switch (fault) {
    case 'text':
      return Buffer.from('This is no image.').toString('base64');
    case 'broken':
      return '@@@ this is no base64 @@@';
    case 'bomb':
      return makePngBomb().toString('base64');
    default:
      return format === 'png' ? makePng(width, height, color).toString('base64') : samples[format];
  }
}
