import svgPath from 'svgpath';
import type { Point } from './place-icons.ts';

/**
 * A filled SVG shape made only of closed cubic curves, so that moving its points distorts it. Stored as flat numbers
 * for speed, because captchas are drawn on the thread that serves requests.
 */
export interface Outline {
  /** x and y of each point: the start of a contour, then two handles and an end for each of its curves. */
  readonly coordinates: Float64Array;
  /** For each contour, the number of values in `coordinates` that belong to it. */
  readonly contours: readonly number[];
}

/** Longer lines are split into several curves, because one curve of four points can follow only part of a wave. */
const maxLineLength = 60;

/** @param data the `d` attribute of a path */
export function parseOutline(data: string): Outline {
  const contours: Point[][] = [];
  let from: Point = { x: 0, y: 0 };
  const draw = (...points: Point[]): void => {
    contours.at(-1)!.push(...points);
    from = points.at(-1)!;
  };
  const drawLine = (to: Point): void => {
    const start = from;
    const parts = Math.ceil(Math.hypot(to.x - start.x, to.y - start.y) / maxLineLength);
    const at = (third: number): Point => interpolate(start, to, third / (3 * parts));
    for (let part = 0; part < parts; part++) draw(at(3 * part + 1), at(3 * part + 2), at(3 * part + 3));
  };
  svgPath(data)
    .abs()
    .unshort()
    .unarc()
    .iterate(([command, ...numbers]) => {
      const point = (i: number): Point => ({ x: numbers[2 * i]!, y: numbers[2 * i + 1]! });
      switch (command) {
        case 'M':
          from = point(0);
          contours.push([from]);
          break;
        case 'L':
          drawLine(point(0));
          break;
        case 'H':
          drawLine({ x: numbers[0]!, y: from.y });
          break;
        case 'V':
          drawLine({ x: from.x, y: numbers[0]! });
          break;
        case 'C':
          draw(point(0), point(1), point(2));
          break;
        case 'Q':
          draw(interpolate(from, point(0), 2 / 3), interpolate(point(1), point(0), 2 / 3), point(1));
          break;
        case 'Z':
          drawLine(contours.at(-1)![0]!);
          break;
        default:
          throw new Error(
            `An icon uses the path command ${command}, which cannot be distorted. Exclude this icon.`,
          );
      }
    });
  return {
    coordinates: Float64Array.from(contours.flat().flatMap(({ x, y }) => [x, y])),
    contours: contours.map((points) => points.length * 2),
  };
}

function interpolate(a: Point, b: Point, fraction: number): Point {
  return { x: a.x + (b.x - a.x) * fraction, y: a.y + (b.y - a.y) * fraction };
}

/**
 * Distance from (0, 0) to the farthest point. No part of the shape is farther away, because no curve leaves the convex
 * hull of its points.
 */
export function reachOf({ coordinates }: Outline): number {
  let farthest = 0;
  for (let i = 0; i < coordinates.length; i += 2) {
    farthest = Math.max(farthest, coordinates[i]! ** 2 + coordinates[i + 1]! ** 2);
  }
  return Math.sqrt(farthest);
}

const maxFormatted = 1_000;

/** Integers with a space after them. Looking them up is faster than formatting them. */
const formatted = Array.from({ length: 2 * maxFormatted + 1 }, (_, i) => `${i - maxFormatted} `);

/**
 * Formats the outline as an SVG `d` attribute, scaled and rounded to integers, which are written much faster than
 * fractions.
 */
export function formatOutline({ coordinates, contours }: Outline, scale: number): string {
  const format = (i: number): string => {
    const value = Math.round(coordinates[i]! * scale);
    return formatted[value + maxFormatted] ?? `${value} `;
  };
  let data = '';
  let i = 0;
  for (const length of contours) {
    const end = i + length;
    data += `M${format(i)}${format(i + 1)}C`;
    for (i += 2; i < end; i++) data += format(i);
    data += 'Z';
  }
  return data;
}
