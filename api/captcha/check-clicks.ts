import { imageHeight, imageWidth, leastDistance, type Place } from './place-icons.ts';

/** Points of an image lie within 0 and this, across and down, however large the image is shown. */
export const pointUnits = 10_000;

/** Everything of an icon lies within it, and a little more; no point is within that of two icons. In pixels. */
export const hitRadius = leastDistance / 2;

/**
 * @param points of the image, 0 to 10000 from its left and from its top
 * @param solution centres of icons, in pixels
 * @returns whether there is one click for each icon, on it, in their order
 */
export function areOnIcons(points: readonly Place[], solution: readonly Place[]): boolean {
  return (
    points.length === solution.length &&
    points.every((point, i) => {
      const across = (point.x / pointUnits) * imageWidth - solution[i]!.x;
      const down = (point.y / pointUnits) * imageHeight - solution[i]!.y;
      return Math.hypot(across, down) <= hitRadius;
    })
  );
}
