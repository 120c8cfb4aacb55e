import { randomBytes } from 'node:crypto';
import test from 'ava';
import { decodeBase64, encodeBase64 } from '../../../workers/upstreams/base64.ts';

const lengths = [0, 1, 2, 3, 4, 100, 196_607, 196_608, 196_609, 1_000_000];

test('bytes are returned unchanged, whether in one piece or in many', async (t) => {
  for (const length of lengths) {
    const bytes = randomBytes(length);
    const text = await encodeBase64(bytes, 'account');
    t.true(text === bytes.toString('base64'), `${length}`);
    t.true((await decodeBase64(text, 'account'))?.equals(bytes), `${length}`);
  }
});

test('base64 that could be decoded in more than one way is rejected, at any position', async (t) => {
  const whole = 'QUJD'.repeat(200_000);
  const change = (at: number, by: string): string => whole.slice(0, at) + by + whole.slice(at + by.length);
  const corrupted = [
    'QQ=',
    'QR==',
    'QUJ',
    'QQ==QUJD',
    ...[0, 262_140, 262_144, 799_996].flatMap((at) =>
      ['Q===', 'QQ =', 'Q\nQU', '-_-_', 'QUJé'].map((by) => change(at, by)),
    ),
    change(262_140, 'QQ=='),
    change(262_140, 'QUI='),
  ];
  for (const text of corrupted) t.is(await decodeBase64(text, 'account'), null, text.slice(0, 20));
});
