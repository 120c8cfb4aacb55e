/** Those that every model of Google's that draws knows; others take them from there. */
const RATIOS = ['1:1', '2:3', '3:2', '3:4', '4:3', '4:5', '5:4', '9:16', '16:9', '21:9'];
const SIZE = /^(\d+)x(\d+)$/;
const SIZE_CLASS = /^\d+k$/i;

/** A picture as models know it that take no pixels: its shape (`3:2`), and its class of size (`2K`). */
export interface PictureShape {
  readonly aspectRatio: string | null;
  readonly sizeClass: string | null;
}

/** The shape nearest to a size such as `1024x1536`; the class of a quality that reads like one. */
export function readPictureShape(size: unknown, quality: unknown): PictureShape {
  const [, width, height] = (typeof size === 'string' ? SIZE.exec(size) : null) ?? [];
  const sizeClass = typeof quality === 'string' && SIZE_CLASS.test(quality) ? quality.toUpperCase() : null;
  return { aspectRatio: findRatio(Number(width) / Number(height)), sizeClass };
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
