import test from 'ava';
import { areOnIcons, hitRadius, pointUnits } from '../../../../api/account-area/captcha/check-clicks.ts';
import {
  createSecureRandom,
  someOf,
  type CaptchaRandom,
} from '../../../../api/account-area/captcha/captcha-random.ts';
import { promptCount } from '../../../../api/account-area/captcha/draw-captcha.ts';
import {
  iconReach,
  imageHeight,
  imageWidth,
  minDistance,
  minMargin,
  placeIcons,
  type Point,
} from '../../../../api/account-area/captcha/place-icons.ts';
import { createSeededRandom } from '../../../crash/seeded-random.ts';

const seeded = createSeededRandom('16');
const random: CaptchaRandom = () => seeded.next();

const toPoint = ({ x, y }: Point): Point => ({
  x: (x / imageWidth) * pointUnits,
  y: (y / imageHeight) * pointUnits,
});

const drawPoint = (): Point => ({ x: random() * pointUnits, y: random() * pointUnits });

const captchas = Array.from({ length: 10_000 }, () => placeIcons(random));

/** Makes one guess per captcha, and returns the number of captchas solved. */
function countSolved(guess: (icons: readonly Point[]) => Point[]): number {
  return captchas.filter((icons) => areOnIcons(guess(icons), icons.slice(0, promptCount))).length;
}

test('icons neither overlap nor cross the border', (t) => {
  t.true(minDistance > 2 * iconReach);
  t.true(minMargin > iconReach);
  for (const icons of captchas.slice(0, 500)) {
    for (const [i, { x, y }] of icons.entries()) {
      t.true(Math.min(x, y, imageWidth - x, imageHeight - y) >= minMargin);
      for (const other of icons.slice(i + 1)) {
        t.true(Math.hypot(x - other.x, y - other.y) >= minDistance);
      }
    }
  }
});

test('the solution is one click per icon, on the icon and in order', (t) => {
  const solution = captchas[0]!.slice(0, promptCount);
  const points = solution.map(toPoint);
  const nearBorder = solution.map(({ x, y }, i) =>
    toPoint({ x: x + Math.cos(i) * iconReach, y: y + Math.sin(i) * iconReach }),
  );
  const offOne = solution.map(({ x, y }, i) => toPoint({ x: x + (i === 2 ? hitRadius + 1 : 0), y }));
  const swapped = [points[1]!, points[0]!, points[2]!, points[3]!];

  t.true(areOnIcons(points, solution));
  t.true(areOnIcons(nearBorder, solution));
  t.false(areOnIcons(offOne, solution));
  t.false(areOnIcons(swapped, solution));
  t.false(areOnIcons(points.toReversed(), solution));
  t.false(areOnIcons(points.slice(0, 3), solution));
  t.false(areOnIcons([...points, points[0]!], solution));
  t.false(areOnIcons([], solution));
  t.false(
    areOnIcons(
      points.map(() => ({ x: Number.NaN, y: Number.NaN })),
      solution,
    ),
  );
});

test('exactly one of the 1680 ordered choices of four icons out of eight solves a captcha', (t) => {
  const icons = captchas[0]!;
  const points = icons.map(toPoint);
  const solution = icons.slice(0, promptCount);
  let all = 0;
  let solved = 0;
  for (const a of points) {
    for (const b of points.filter((point) => point !== a)) {
      for (const c of points.filter((point) => point !== a && point !== b)) {
        for (const d of points.filter((point) => point !== a && point !== b && point !== c)) {
          all++;
          if (areOnIcons([a, b, c, d], solution)) solved++;
        }
      }
    }
  }
  t.is(all, 1_680);
  t.is(solved, 1);
});

test('guessing the order with known icon positions solves fewer than one captcha in 1000', (t) => {
  const inSomeOrder = countSolved((icons) => someOf(random, icons, promptCount).map(toPoint));
  // If icons were placed in prompt order from left to right, clicking them in that order would solve more captchas.
  const fromTheLeft = countSolved((icons) =>
    [...icons]
      .sort((a, b) => a.x - b.x)
      .slice(0, promptCount)
      .map(toPoint),
  );
  t.true(inSomeOrder * 1_000 < captchas.length, `${inSomeOrder} of ${captchas.length}`);
  t.true(fromTheLeft * 1_000 < captchas.length, `${fromTheLeft} of ${captchas.length}`);
});

test('blind guessing solves fewer than one captcha in 1000', (t) => {
  const fixed = Array.from({ length: promptCount }, drawPoint);
  const anywhere = countSolved(() => Array.from({ length: promptCount }, drawPoint));
  const always = countSolved(() => fixed);
  const middle = countSolved(() => fixed.map(() => ({ x: 5_000, y: 5_000 })));
  t.true(anywhere * 1_000 < captchas.length, `${anywhere} of ${captchas.length}`);
  t.true(always * 1_000 < captchas.length, `${always} of ${captchas.length}`);
  t.is(middle, 0);
});

test('randomness comes from the cryptographic generator by default: no two processes place icons identically', (t) => {
  const placements = Array.from({ length: 50 }, () => JSON.stringify(placeIcons(createSecureRandom())));
  t.is(new Set(placements).size, placements.length);
});
