import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { parseOutline, type Outline } from './outline.ts';

const { resolve } = createRequire(import.meta.url);

/**
 * Icons of `@phosphor-icons/core` that people can distinguish at a glance, even rotated and distorted. So there are no
 * arrows, no plain circles or squares, and no two similar icons: headphones but no magnet, lightning but no hourglass,
 * a ghost but no bell. A rotated and filled sailboat looks like a paper plane, so there is only the airplane.
 */
export const iconNames = [
  'airplane',
  'anchor',
  'bicycle',
  'bug',
  'butterfly',
  'cactus',
  'camera',
  'car-profile',
  'coffee',
  'crown',
  'eye',
  'fish',
  'game-controller',
  'gear',
  'ghost',
  'gift',
  'guitar',
  'hammer',
  'headphones',
  'heart',
  'house',
  'key',
  'lightning',
  'moon',
  'paw-print',
  'puzzle-piece',
  'rabbit',
  'rocket',
  'scissors',
  'shopping-cart',
  'sneaker',
  'star',
  't-shirt',
  'tree-evergreen',
  'trophy',
  'umbrella',
] as const;

export type IconName = (typeof iconNames)[number];
export type IconWeight = 'bold' | 'fill';

/** Width and height of each icon's square. */
export const iconUnits = 256;

export type IconShapes = ReadonlyMap<IconName, Readonly<Record<IconWeight, Outline>>>;

/**
 * Reads the icons from the installed package: some 70 files of at most a kilobyte. Reads them one after the other, so
 * that the process serves requests in between.
 */
export async function readIconShapes(): Promise<IconShapes> {
  const shapes = new Map<IconName, Readonly<Record<IconWeight, Outline>>>();
  for (const name of iconNames) {
    shapes.set(name, { bold: await readIcon(name, 'bold'), fill: await readIcon(name, 'fill') });
  }
  return shapes;
}

async function readIcon(name: IconName, weight: IconWeight): Promise<Outline> {
  const path = resolve(`@phosphor-icons/core/${weight}/${name}-${weight}.svg`);
  const data = /^<svg[^>]*><path d="([^"]*)"\/><\/svg>\s*$/.exec(await readFile(path, 'utf8'))?.[1];
  if (data === undefined) {
    throw new Error(
      `${path} is not an SVG with a single path. Install @phosphor-icons/core in the version of the lock file.`,
    );
  }
  return parseOutline(data);
}
