import type { JsonRecord } from '../../../shared/encoding/json-record.ts';
import { readImageShape } from '../image-shape.ts';

/**
 * Builds `imageConfig` from a size such as `1024x1536` and a quality such as `2K`. Returns null if neither
 * means anything to Gemini, which takes an aspect ratio and a size class, never pixels.
 */
export function toImageConfig(size: unknown, quality: unknown): JsonRecord | null {
  const { aspectRatio, sizeClass } = readImageShape(size, quality);
  if (aspectRatio === null && sizeClass === null) {
    return null;
  }
  return {
    ...(aspectRatio === null ? {} : { aspectRatio }),
    ...(sizeClass === null ? {} : { imageSize: sizeClass }),
  };
}
