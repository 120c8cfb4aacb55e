import type { InputImage } from '../../upstream.ts';
import { maxSide, resizeTo } from './apply-edits.ts';
import { transparent, loadSharp, openRaster, type Raster, toRaster } from './raster.ts';

export interface EditSource {
  /** All inputs side by side, scaled to the height of the first. */
  readonly image: Raster;
  /** The width of the first input. */
  readonly firstWidth: number;
}

/** Joins several images into one, in order, so that an edit applies to all of them. */
export async function readInputs(inputs: readonly InputImage[]): Promise<EditSource> {
  const bound = Math.floor(maxSide / inputs.length);
  const rasters: Raster[] = [];
  for (const input of inputs) {
    const image = await decode(input, bound);
    const height = rasters[0]?.height ?? image.height;
    const width = Math.round((image.width * height) / image.height);
    rasters.push(await resizeTo(image, Math.min(bound, Math.max(1, width)), height));
  }
  const [first] = rasters;
  if (first === undefined) throw new TypeError('an edit needs an image');
  return { image: rasters.length === 1 ? first : await joinInRow(rasters), firstWidth: first.width };
}

async function decode({ bytes }: InputImage, bound: number): Promise<Raster> {
  const sharp = await loadSharp();
  // Shrink while decoding, so that no more pixels than necessary are in memory.
  return await toRaster(sharp(bytes).resize(bound, bound, { fit: 'inside', withoutEnlargement: true }));
}

async function joinInRow(rasters: readonly Raster[]): Promise<Raster> {
  const sharp = await loadSharp();
  const width = rasters.reduce((sum, raster) => sum + raster.width, 0);
  let left = 0;
  const rowParts = rasters.map((raster) => {
    const part = {
      input: raster.data,
      raw: { width: raster.width, height: raster.height, channels: 4 as const },
      left,
      top: 0,
    };
    left += raster.width;
    return part;
  });
  const height = Math.max(...rasters.map((raster) => raster.height));
  return await toRaster(
    sharp({ create: { width, height, channels: 4, background: transparent } }).composite(rowParts),
  );
}

/** Returns the source image, with the parts where the mask is transparent taken from the edited image. */
export async function applyMask(
  { image: source, firstWidth }: EditSource,
  edited: Raster,
  mask: InputImage,
): Promise<Raster> {
  const { width, height } = source;
  const placement = { raw: { width, height, channels: 4 as const }, left: 0, top: 0 };
  const resizedEdit = await resizeTo(edited, width, height);
  const hole = await cutHole(mask, firstWidth, source);
  const part = (await openRaster(resizedEdit)).composite([
    { input: hole.data, blend: 'dest-in', ...placement },
  ]);
  const { data } = await toRaster(part);
  return await toRaster((await openRaster(source)).composite([{ input: data, ...placement }]));
}

/**
 * Returns the inverse of the mask: opaque where the mask is transparent. The mask applies to the first input; the others
 * do not change.
 */
async function cutHole(mask: InputImage, firstWidth: number, { width, height }: Raster): Promise<Raster> {
  const sharp = await loadSharp();
  const opaque = { r: 0, g: 0, b: 0, alpha: 1 };
  const whole = await toRaster(
    sharp(mask.bytes)
      .ensureAlpha()
      .resize(firstWidth, height, { fit: 'fill' })
      .extend({ right: width - firstWidth, background: opaque }),
  );
  const changes = await (await openRaster(whole)).extractChannel('alpha').negate().raw().toBuffer();
  return await toRaster(
    sharp({ create: { width, height, channels: 3, background: '#000' } }).joinChannel(changes, {
      raw: { width, height, channels: 1 },
    }),
  );
}
