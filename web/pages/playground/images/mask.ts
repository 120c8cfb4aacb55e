import { PictureError, toDataUri, type Picture } from '../shared/pictures.ts';

type Drawing = CanvasImageSource;

/** Returns a mask with the dimensions of a picture, as a data URI of a PNG. */
async function drawMask(
  { width, height }: Picture,
  draw: (context: OffscreenCanvasRenderingContext2D) => void,
): Promise<string> {
  const canvas = new OffscreenCanvas(width, height);
  draw(canvas.getContext('2d')!);
  return await toDataUri(await canvas.convertToBlob({ type: 'image/png' }));
}

/** Makes a mask of what was painted: that may change. */
export const maskOfStrokes = (strokes: Drawing, picture: Picture): Promise<string> =>
  drawMask(picture, (context) => {
    context.fillRect(0, 0, picture.width, picture.height);
    context.globalCompositeOperation = 'destination-out';
    context.drawImage(strokes, 0, 0, picture.width, picture.height);
  });

/** Reads a mask that somebody made elsewhere. A large picture was scaled down, so its mask is, too. @throws PictureError */
export async function fitMask(file: File, picture: Picture): Promise<string> {
  const bitmap = await createImageBitmap(file).catch(() => {
    throw new PictureError(file.name);
  });
  return await drawMask(picture, (context) => context.drawImage(bitmap, 0, 0, picture.width, picture.height));
}
