import test from 'ava';
import { iconNames, readIconShapes } from '../../../../api/account-area/captcha/captcha-icons.ts';
import { drawPlainIcon, mapTemplate } from './template-matcher.ts';

test('there are enough icons, and no duplicates', (t) => {
  t.true(iconNames.length >= 24);
  t.is(new Set(iconNames).size, iconNames.length);
});

test('no icon looks like a rotated copy of another', async (t) => {
  const angles = Array.from({ length: 18 }, (_, i) => i * 20);
  const shapes = await readIconShapes();
  const icons = await Promise.all(
    [...shapes].map(async ([name, { fill }]) => ({
      name,
      rotations: await Promise.all(angles.map((degrees) => mapTemplate(drawPlainIcon(fill, 80, degrees)))),
    })),
  );
  for (const [i, one] of icons.entries()) {
    const upright = one.rotations[0]!.lightness.values;
    for (const other of icons.slice(i + 1)) {
      for (const { lightness } of other.rotations) {
        const similarity = upright.reduce((sum, value, i) => sum + value * lightness.values[i]!, 0);
        // For comparison: an arrow and the same arrow reversed score 1; a heart and a ghost score 0.85.
        if (similarity >= 0.88) t.fail(`${one.name} and ${other.name} look alike: ${similarity}`);
      }
    }
  }
  t.pass();
});
