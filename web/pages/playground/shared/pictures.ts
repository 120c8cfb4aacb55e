/** A picture that goes into a request, as a data URI. */
export interface Picture {
  readonly name: string;
  readonly url: string;
  readonly width: number;
  readonly height: number;
}

/** What the API takes. */
export const pictureTypes = ['image/png', 'image/jpeg', 'image/webp', 'image/gif'] as const;

/** Larger pictures are scaled down: models do the same, and requests have at most 32 MB. */
const maxSide = 2_048;
const maxBytes = 3_000_000;
const jpegQuality = 0.9;

export class PictureError extends Error {}

/** Reads a picture that somebody chose. @throws PictureError if the browser cannot show it */
export async function readPicture(file: File): Promise<Picture> {
  if (!pictureTypes.some((type) => type === file.type)) throw new PictureError(file.name);
  const bitmap = await createImageBitmap(file).catch(() => {
    throw new PictureError(file.name);
  });
  const { width, height } = bitmap;
  const scale = Math.min(1, maxSide / Math.max(width, height));
  const isKept = scale === 1 && file.size <= maxBytes;
  const size = { width: Math.round(width * scale), height: Math.round(height * scale) };
  const blob = isKept ? file : await drawBitmap(bitmap, size, file.type);
  bitmap.close();
  return { name: file.name, url: await toDataUri(blob), ...size };
}

interface Size {
  readonly width: number;
  readonly height: number;
}

async function drawBitmap(bitmap: ImageBitmap, { width, height }: Size, type: string): Promise<Blob> {
  const canvas = new OffscreenCanvas(width, height);
  canvas.getContext('2d')!.drawImage(bitmap, 0, 0, width, height);
  return await canvas.convertToBlob({
    type: type === 'image/jpeg' ? type : 'image/webp',
    quality: jpegQuality,
  });
}

export async function toDataUri(blob: Blob): Promise<string> {
  return await new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener('load', () => resolve(reader.result as string));
    reader.addEventListener('error', () => reject(new PictureError()));
    reader.readAsDataURL(blob);
  });
}

/** The pictures among what was dropped or pasted. */
export const listPictures = (data: DataTransfer | null): File[] =>
  Array.from(data?.files ?? []).filter(({ type }) => type.startsWith('image/'));
