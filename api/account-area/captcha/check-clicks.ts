import { imageHeight, imageWidth, minDistance, type Point } from './place-icons.ts';

/** Coordinates range from 0 to this in both directions, regardless of the displayed size. */
export const pointUnits = 10_000;

/**
 * Maximum distance of a click from the centre of its icon (px). Covers slightly more than the icon; no point is within
 * this distance of two icons.
 */
export const hitRadius = minDistance / 2;

/**
 * @param points 0 to 10000, from the image's left and top
 * @param solution centres of icons, in pixels
 * @returns whether there is exactly one click on each icon, in order
 */
export function areOnIcons(points: readonly Point[], solution: readonly Point[]): boolean {
  return (
    points.length === solution.length &&
    points.every((point, i) => {
      const across = (point.x / pointUnits) * imageWidth - solution[i]!.x;
      const down = (point.y / pointUnits) * imageHeight - solution[i]!.y;
      return Math.hypot(across, down) <= hitRadius;
    })
  );
}
