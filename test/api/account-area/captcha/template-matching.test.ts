import test from 'ava';
import sharp from 'sharp';
import {
  iconNames,
  readIconShapes,
  type IconName,
} from '../../../../api/account-area/captcha/captcha-icons.ts';
import { hitRadius } from '../../../../api/account-area/captcha/check-clicks.ts';
import {
  drawCaptcha,
  promptCell,
  promptCount,
  type DrawnCaptcha,
} from '../../../../api/account-area/captcha/draw-captcha.ts';
import { someOf, type CaptchaRandom } from '../../../../api/account-area/captcha/captcha-random.ts';
import {
  iconCount,
  imageHeight,
  imageWidth,
  placeIcons,
} from '../../../../api/account-area/captcha/place-icons.ts';
import { createSeededRandom } from '../../../crash/seeded-random.ts';
import {
  drawPlainIcon,
  findBest,
  mapPixels,
  mapTemplate,
  type MapKind,
  type PixelMaps,
} from './template-matcher.ts';

const rounds = 24;
const shapes = await readIconShapes();

/** The icon at a position of the prompt image, cut out and resized to several sizes. */
async function cutIcon({ promptImage }: DrawnCaptcha, position: number): Promise<PixelMaps[]> {
  const { width, height } = promptCell;
  const side = 72;
  const region = {
    left: position * width + (width - side) / 2,
    top: (height - side) / 2,
    width: side,
    height: side,
  };
  const sizes = [70, 80, 90];
  return await Promise.all(
    sizes.map((size) => mapTemplate(sharp(promptImage).extract(region).resize(size, size))),
  );
}

const cutIcons = new Map<DrawnCaptcha, Map<number, Promise<PixelMaps[]>>>();

/** Cuts each icon once, for all kinds of maps. */
function cutPrompt(captcha: DrawnCaptcha, position: number): Promise<PixelMaps[]> {
  const known = cutIcons.get(captcha) ?? new Map<number, Promise<PixelMaps[]>>();
  cutIcons.set(captcha, known);
  const cut = known.get(position) ?? cutIcon(captcha, position);
  known.set(position, cut);
  return cut;
}

/**
 * The files of an icon in both weights. The matcher is told which icons are in the prompt; an attacker would have to
 * identify them first.
 */
function useFiles(sizes: readonly number[], angles: readonly number[]) {
  const known = new Map<IconName, Promise<PixelMaps[]>>();
  const draw = (name: IconName): Promise<PixelMaps[]> => {
    const { bold, fill } = shapes.get(name)!;
    const images = [bold, fill].flatMap((outline) =>
      sizes.flatMap((size) => angles.map((degrees) => drawPlainIcon(outline, size, degrees))),
    );
    return Promise.all(images.map(mapTemplate));
  };
  return ({ icons }: DrawnCaptcha, position: number): Promise<PixelMaps[]> => {
    const { name } = icons[position]!;
    if (!known.has(name)) known.set(name, draw(name));
    return known.get(name)!;
  };
}

interface Matcher {
  readonly cut: (captcha: DrawnCaptcha, position: number) => Promise<PixelMaps[]>;
  readonly kinds: readonly MapKind[];
}

const matchers: Record<string, Matcher> = {
  'the prompt image': { cut: cutPrompt, kinds: ['lightness', 'edges'] },
  // Edges only: matching the lightness finds fewer icons.
  'the files of the icons': { cut: useFiles([76, 86, 96], [0]), kinds: ['edges'] },
  'the files of the icons at twelve rotations': {
    cut: useFiles(
      [86],
      Array.from({ length: 12 }, (_, i) => i * 30),
    ),
    kinds: ['edges'],
  },
};

const captchas: { readonly captcha: DrawnCaptcha; readonly maps: PixelMaps }[] = [];

test.before(async () => {
  const seeded = createSeededRandom('2026');
  for (let round = 0; round < rounds; round++) {
    const captcha = await drawCaptcha(() => seeded.next());
    captchas.push({ captcha, maps: await mapPixels(sharp(captcha.image)) });
  }
});

test.serial(
  'the matcher finds icons drawn without distortion, so it is the distortion that defeats it in the other tests',
  async (t) => {
    const { cut } = matchers['the files of the icons at twelve rotations']!;
    const seeded = createSeededRandom('2026');
    const pages = 4;
    let found = 0;
    for (let page = 0; page < pages; page++) {
      const captcha = await drawPlainly(() => seeded.next());
      found += await countFound({ captcha, maps: await mapPixels(sharp(captcha.image)) }, cut, 'edges');
    }
    const share = found / (pages * promptCount);
    t.log(`finds ${(share * 100).toFixed(1)} % of the icons`);
    t.true(share > 0.8, `finds ${share}`);
  },
);

/** The icons of a captcha drawn from their files, rotated, black on white. */
async function drawPlainly(random: CaptchaRandom): Promise<DrawnCaptcha> {
  const names = someOf(random, iconNames, iconCount);
  const icons = placeIcons(random).map((place, i) => ({ ...place, name: names[i]! }));
  const images = await Promise.all(
    icons.map(async ({ x, y, name }, i) => {
      const image = drawPlainIcon(shapes.get(name)!.bold, 86, 30 * i);
      return { input: await image.png().toBuffer(), left: x - 43, top: y - 43 };
    }),
  );
  const page = sharp({
    create: { width: imageWidth, height: imageHeight, channels: 3, background: 'white' },
  });
  const image = await page.composite(images).png().toBuffer();
  return { image, promptImage: image, icons };
}

for (const [source, { cut, kinds }] of Object.entries(matchers)) {
  for (const kind of kinds) {
    test.serial(`matching ${kind} against ${source} solves fewer than one captcha in 20`, async (t) => {
      const found: number[] = [];
      for (const captcha of captchas) found.push(await countFound(captcha, cut, kind));
      const share = found.reduce((sum, count) => sum + count, 0) / (rounds * promptCount);
      const solved = found.filter((count) => count === promptCount).length / rounds;
      t.log(`finds ${(share * 100).toFixed(1)} % of the icons, solves ${(solved * 100).toFixed(1)} %`);
      t.true(solved < 1 / 20, `solves ${solved}`);
      // The chance of finding all four icons. It is more precise than `solved`, as there are four icons per captcha.
      t.true(share ** promptCount < 1 / 20, `finds ${share}`);
    });
  }
}

async function countFound(
  { captcha, maps }: { captcha: DrawnCaptcha; maps: PixelMaps },
  cut: Matcher['cut'],
  kind: MapKind,
): Promise<number> {
  let found = 0;
  for (const [position, icon] of captcha.icons.slice(0, promptCount).entries()) {
    const templates = await cut(captcha, position);
    const best = findBest(
      maps[kind],
      templates.map((template) => template[kind]),
    );
    if (Math.hypot(best.x - icon.x, best.y - icon.y) <= hitRadius) found++;
  }
  return found;
}
