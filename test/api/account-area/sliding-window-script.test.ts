import { randomUUID } from 'node:crypto';
import test from 'ava';
import fc from 'fast-check';
import { useSlidingWindows, type SlidingWindow } from '../../../api/account-area/sliding-window-script.ts';
import { ageWindow, readOldestMs, readRedisMs } from '../../support/sliding-windows.ts';
import { useRedis } from '../../support/use-redis.ts';

const redis = useRedis(test);

const openWindow = (limit: number, windowSeconds = 3_600): SlidingWindow => ({
  key: `mg:{web}:limit:test:${randomUUID()}`,
  limit,
  windowSeconds,
});

/** A step of time, far longer than a test run, so that no attempt expires merely because the test takes time. */
const unitSeconds = 1_000;
const lengths = [2, 5];
const limits = [3, 4];

const step = fc.oneof(
  fc.record({
    kind: fc.constantFrom('take' as const, 'check' as const, 'count' as const),
    windows: fc.constantFrom([0], [1], [0, 1], [1, 0]),
  }),
  fc.record({ kind: fc.constant('advance' as const), units: fc.integer({ min: 1, max: 6 }) }),
);

/** The reference implementation: the times of all recorded attempts, and the rule in one expression. */
class Model {
  now = 0;
  readonly #counted: number[][] = [[], []];

  /** Time until the window has a free slot; zero if it has one. */
  waitUnits(window: number): number {
    const { [window]: length = 0 } = lengths;
    const recent = this.#counted[window]!.filter((at) => this.now - at < length);
    const decisive = recent.at(-limits[window]!);
    return decisive === undefined ? 0 : decisive + length - this.now;
  }

  count(window: number): void {
    this.#counted[window]!.push(this.now);
  }
}

test('a window admits exactly the attempts that the rule allows, in any sequence of `take`, `check` and `count`', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const model = new Model();
      const windows = lengths.map((length, index) => openWindow(limits[index]!, length * unitSeconds));
      for (const step of steps) {
        if (step.kind === 'advance') {
          model.now += step.units;
          for (const { key } of windows) await ageWindow(redis(), key, step.units * unitSeconds * 1_000);
          continue;
        }
        const waits = step.windows.map((window) => model.waitUnits(window));
        const longest = Math.max(...waits);
        const used = step.windows.map((window) => windows[window]!);
        const full = await useSlidingWindows(redis(), step.kind, used);
        if (full === null) t.is(longest, 0);
        else {
          t.is(Math.ceil(full.waitMs / 1_000 / unitSeconds), longest);
          t.is(waits[full.index], longest);
        }
        if (step.kind === 'count' || (step.kind === 'take' && full === null)) {
          for (const window of step.windows) model.count(window);
        }
        for (const { key, limit, windowSeconds } of used) {
          t.true((await redis().zcard(key)) <= limit);
          t.true((await redis().ttl(key)) <= windowSeconds);
        }
      }
    }),
    { numRuns: 60 },
  );
});

test('a slot becomes free when its attempt is as old as the window, exact to the millisecond', async (t) => {
  const window = openWindow(1, 60);
  await useSlidingWindows(redis(), 'take', [window]);
  // The attempt expires in a second. The check may come later on a slow machine, so either result must fit the times.
  await ageWindow(redis(), window.key, 59_000);
  const freeAtMs = (await readOldestMs(redis(), window.key)) + 60_000;
  const beforeMs = await readRedisMs(redis());
  const full = await useSlidingWindows(redis(), 'check', [window]);
  const afterMs = await readRedisMs(redis());
  if (full === null) t.true(afterMs >= freeAtMs);
  else t.true(full.waitMs <= freeAtMs - beforeMs && full.waitMs >= freeAtMs - afterMs);
  await ageWindow(redis(), window.key, 1_000);
  t.is(await useSlidingWindows(redis(), 'take', [window]), null);
});

test('the number of simultaneous attempts that are admitted is exactly the limit', async (t) => {
  const window = openWindow(10);
  const results = await Promise.all(
    Array.from({ length: 50 }, () => useSlidingWindows(redis(), 'take', [window])),
  );
  t.is(results.filter((full) => full === null).length, 10);
});

test('an attempt that is repeated under its name takes one slot, and is as old as its last repetition', async (t) => {
  const [narrow, wide] = [openWindow(1, 100), openWindow(2, 100)];
  const take = (member: string, windows = [narrow, wide]) =>
    useSlidingWindows(redis(), 'take', windows, member);
  for (let i = 0; i < 3; i++) t.is(await take('a'), null);
  t.is((await take('b'))?.index, 0, 'the window is full for others');
  t.is(await take('b', [wide]), null);
  t.is((await take('c', [wide]))?.index, 0);
  for (const { key } of [narrow, wide]) await ageWindow(redis(), key, 60_000);
  t.is(await take('a'), null);
  for (const { key } of [narrow, wide]) await ageWindow(redis(), key, 60_000);
  t.is((await take('b'))?.index, 0, 'the repetition is 60 s old');
  t.is(await take('c', [wide]), null, 'the attempt that was not repeated has expired');
});

test('if one of several windows is full, the attempt is not recorded in any of them', async (t) => {
  const [full, free] = [openWindow(1), openWindow(5)];
  await useSlidingWindows(redis(), 'take', [full]);
  for (let i = 0; i < 3; i++) t.is((await useSlidingWindows(redis(), 'take', [free, full]))?.index, 1);
  t.is(await redis().exists(free.key), 0);
});

test('if several windows are full, the one that stays full longest is reported', async (t) => {
  const [short, long] = [openWindow(1, 60), openWindow(1, 3_600)];
  await useSlidingWindows(redis(), 'take', [short, long]);
  for (const windows of [
    [long, short],
    [short, long],
  ]) {
    const full = await useSlidingWindows(redis(), 'take', windows);
    t.is(windows[full!.index], long);
    t.true(full!.waitMs > 60_000);
  }
});

test('failures beyond the limit use no additional memory, because each one replaces the oldest', async (t) => {
  const window = openWindow(3, 100);
  for (let i = 0; i < 3; i++) await useSlidingWindows(redis(), 'count', [window]);
  await ageWindow(redis(), window.key, 50_000);
  for (let i = 0; i < 10; i++) await useSlidingWindows(redis(), 'count', [window]);
  t.is(await redis().zcard(window.key), 3);
  await ageWindow(redis(), window.key, 60_000);
  t.not(
    await useSlidingWindows(redis(), 'check', [window]),
    null,
    'the first three failures have expired, the others have not',
  );
});

test("if Redis's clock steps back, no slots become free, and no caller is blocked for longer than one window", async (t) => {
  const window = openWindow(2, 60);
  for (let i = 0; i < 2; i++) await useSlidingWindows(redis(), 'take', [window]);
  await ageWindow(redis(), window.key, -3_600_000);
  const full = await useSlidingWindows(redis(), 'take', [window]);
  t.true(full !== null && full.waitMs <= 60_000);
  await ageWindow(redis(), window.key, 60_000);
  t.is(await useSlidingWindows(redis(), 'take', [window]), null);
});

test('an unused window is deleted once its last attempt has expired', async (t) => {
  const window = openWindow(2, 60);
  await useSlidingWindows(redis(), 'take', [window]);
  await redis().expire(window.key, 5);
  await useSlidingWindows(redis(), 'take', [window]);
  const ttlMs = await redis().pttl(window.key);
  t.true(ttlMs > 5_000 && ttlMs <= 60_000);
});
