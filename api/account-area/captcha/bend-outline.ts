import { iconUnits } from './captcha-icons.ts';
import { between, type CaptchaRandom } from './captcha-random.ts';
import type { Outline } from './outline.ts';

/** Side of the icon's square while the icon is distorted. The distorted icon is then scaled. */
const side = 80;

export type Bend = (outline: Outline) => Outline;

export interface BendOptions {
  readonly degrees: number;
  /** How far points are displaced, in pixels of an icon 80 pixels wide. */
  readonly height: number;
  readonly tilt: readonly [across: number, down: number];
  readonly isMirrored?: boolean;
}

/**
 * Creates a distortion around the centre of an icon's square, which becomes (0, 0): it stretches, shears, rotates, bends
 * and tilts. Applied to both weights of an icon, it distorts both alike.
 */
export function createBend(
  random: CaptchaRandom,
  { degrees, height, tilt, isMirrored = false }: BendOptions,
): Bend {
  const stretch = between(random, 0.82, 1.22);
  const width = isMirrored ? -side * stretch : side * stretch;
  const shear = between(random, -0.28, 0.28);
  const cos = Math.cos((degrees * Math.PI) / 180);
  const sin = Math.sin((degrees * Math.PI) / 180);
  const across = createWave(random, height);
  const down = createWave(random, height);
  return ({ coordinates, contours }) => {
    const bent = new Float64Array(coordinates.length);
    for (let i = 0; i < bent.length; i += 2) {
      const v = ((coordinates[i + 1]! / iconUnits - 0.5) * side) / stretch;
      const u = (coordinates[i]! / iconUnits - 0.5) * width + shear * v;
      const x = u * cos - v * sin;
      const y = u * sin + v * cos;
      const scale = 1 / (1 + tilt[0] * x + tilt[1] * y);
      bent[i] = (x + across(x, y)) * scale;
      bent[i + 1] = (y + down(x, y)) * scale;
    }
    return { coordinates: bent, contours };
  };
}

/** The sine of each of the equal parts of a circle. Looking it up is faster than calculating it for each point. */
const sineParts = 4_096;
const sines = Float64Array.from({ length: sineParts }, (_, i) => Math.sin((2 * Math.PI * i) / sineParts));

/** Creates a wave in a random direction, about as long as an icon. */
function createWave(random: CaptchaRandom, height: number): (x: number, y: number) => number {
  const direction = random() * 2 * Math.PI;
  const frequency = sineParts / between(random, 50, 95);
  const kx = Math.cos(direction) * frequency;
  const ky = Math.sin(direction) * frequency;
  const phase = random() * sineParts;
  return (x, y) => height * sines[(kx * x + ky * y + phase) & (sineParts - 1)]!;
}
