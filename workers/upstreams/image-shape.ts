/** Ratios that every Google image model supports; other vendors have adopted them. */
const RATIOS = ['1:1', '2:3', '3:2', '3:4', '4:3', '4:5', '5:4', '9:16', '16:9', '21:9'];
const SIZE = /^(\d+)x(\d+)$/;
const SIZE_CLASS = /^\d+k$/i;

/** The shape of an image for models that do not accept pixels: its aspect ratio (`3:2`) and size class (`2K`). */
export interface ImageShape {
  readonly aspectRatio: string | null;
  readonly sizeClass: string | null;
}

/** Returns the nearest aspect ratio of a size such as `1024x1536`, and the size class (`2K`) if the quality is one. */
export function readImageShape(size: unknown, quality: unknown): ImageShape {
  const [, width, height] = (typeof size === 'string' ? SIZE.exec(size) : null) ?? [];
  const sizeClass = typeof quality === 'string' && SIZE_CLASS.test(quality) ? quality.toUpperCase() : null;
  return { aspectRatio: findRatio(Number(width) / Number(height)), sizeClass };
}

/** Returns the nearest supported ratio, compared by quotient. */
function findRatio(requested: number): string | null {
  if (!Number.isFinite(requested) || requested <= 0) {
    return null;
  }
  const distances = RATIOS.map((ratio) => {
    const [width, height] = ratio.split(':').map(Number) as [number, number];
    return Math.abs(Math.log(width / height / requested));
  });
  return RATIOS[distances.indexOf(Math.min(...distances))] ?? null;
}
