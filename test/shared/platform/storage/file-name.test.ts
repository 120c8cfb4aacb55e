import test from 'ava';
import {
  createApiFileKey,
  createFileKey,
  createLastingFileKey,
  fileLifetimeMs,
  fileNameOf,
  findDueTime,
  findObjectHeaders,
  parseFileName,
} from '../../../../shared/platform/storage/file-name.ts';

const day = 24 * 60 * 60 * 1_000;
const now = Date.UTC(2026, 10, 23, 12, 0, 0, 1);

test('a name contains the creation time, the type and the expiry of its file, to the millisecond', (t) => {
  t.is(fileLifetimeMs, day);
  for (const [type, extension] of [
    ['image/png', 'png'],
    ['image/jpeg', 'jpg'],
    ['image/webp', 'webp'],
  ] as const) {
    const key = createFileKey(type, now);
    t.regex(key, new RegExp(`^files/[0-9a-f]{12}-[A-Za-z0-9_-]{43}\\.${extension}$`));
    const name = parseFileName(fileNameOf(key));
    t.like(name, { key, createdAtMs: now, contentType: type });
    t.regex(name!.disposition, new RegExp(`^inline; filename="image-[A-Za-z0-9_-]{8}\\.${extension}"$`));
    t.is(findDueTime(key), now + day);
  }
});

test('names sort by time, and no two are equal', (t) => {
  const times = [0, 1, now - 1, now, now + day, Date.UTC(2500, 0)];
  const keys = times.map((at) => createFileKey('image/png', at));
  t.deepEqual([...keys].sort(), keys);
  t.is(new Set(Array.from({ length: 100 }, () => createFileKey('image/png', now))).size, 100);
});

test('a file with a name in the former format, without a time, is at the root of the bucket and never expires', (t) => {
  const former = `${'a'.repeat(43)}.png`;
  t.like(parseFileName(former), { key: former, createdAtMs: null, contentType: 'image/png' });
  t.is(fileNameOf(former), former);
  for (const key of [former, `files/${former}`, 'files/readme.txt', 'answers/1/2', 'other', 'files/'])
    t.is(findDueTime(key), null, key);
});

test('the key of a file of the API contains the time at which it is due, and keys sort by that time', (t) => {
  const times = [0, 1, now, now + 30 * day, Date.UTC(2500, 0)];
  const keys = times.map((at) => createApiFileKey(at));
  for (const key of keys) t.regex(key, /^batch-files\/[0-9a-f]{12}-[A-Za-z0-9_-]{43}$/);
  t.deepEqual(keys.map(findDueTime), times);
  t.deepEqual(keys.toSorted(), keys);
  t.is(new Set(Array.from({ length: 100 }, () => createApiFileKey(now))).size, 100);
});

test('an image of a batch has a link that works until the time in its name', (t) => {
  const key = createLastingFileKey('image/png', now);
  const name = fileNameOf(key);
  t.true(name.startsWith('until-'));
  t.like(parseFileName(name), { key, createdAtMs: null, dueAtMs: now, contentType: 'image/png' });
  t.is(findDueTime(key), now);
  t.is(parseFileName(name.replace('until-', 'until-until-')), null);
});

test('a file of the API has no public link', (t) => {
  const key = createApiFileKey(now);
  const name = fileNameOf(key);
  t.is(parseFileName(name), null);
  t.is(parseFileName(name.replace('batch-files/', '')), null);
  t.deepEqual(findObjectHeaders(key), {});
  for (const other of [
    `${key}.gif`,
    `${key}\n`,
    key.toUpperCase(),
    `x${key}`,
    'batch-files/',
    'batch-files/0-x',
  ])
    t.is(findDueTime(other), null, other);
});

test('text that is not a file name is rejected', (t) => {
  const name = fileNameOf(createFileKey('image/png', now));
  const others = ['', 'x', `../${name}`, `files/${name}`, `${name}.png`, name.toUpperCase(), `${name}\n`];
  for (const other of others) t.is(parseFileName(other), null, other);
});
