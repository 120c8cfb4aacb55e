import type { JsonRecord } from '../json-value.ts';

/** Those that every image model of Google's knows. */
const RATIOS = ['1:1', '2:3', '3:2', '3:4', '4:3', '4:5', '5:4', '9:16', '16:9', '21:9'];
const SIZE = /^(\d+)x(\d+)$/;
const IMAGE_SIZE = /^\d+k$/i;

/**
 * `imageConfig` of a size such as `1024x1536` and a quality such as `2K`; null where neither says anything to Gemini,
 * which knows pictures by their shape and their size class, never by pixels.
 */
export function toImageConfig(size: unknown, quality: unknown): JsonRecord | null {
  const [, width, height] = (typeof size === 'string' ? SIZE.exec(size) : null) ?? [];
  const aspectRatio = findRatio(Number(width) / Number(height));
  const imageSize = typeof quality === 'string' && IMAGE_SIZE.test(quality) ? quality.toUpperCase() : null;
  if (aspectRatio === null && imageSize === null) {
    return null;
  }
  return {
    ...(aspectRatio === null ? {} : { aspectRatio }),
    ...(imageSize === null ? {} : { imageSize }),
  };
}

/** The nearest ratio, by how many times one is wider than the other. */
function findRatio(wanted: number): string | null {
  if (!Number.isFinite(wanted) || wanted <= 0) {
    return null;
  }
  const distances = RATIOS.map((ratio) => {
    const [width, height] = ratio.split(':').map(Number) as [number, number];
    return Math.abs(Math.log(width / height / wanted));
  });
  return RATIOS[distances.indexOf(Math.min(...distances))] ?? null;
}
