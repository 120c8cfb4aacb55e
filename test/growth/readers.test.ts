import test from 'ava';
import { findSlowInputs } from './reader.ts';
import { bodyReaders } from './readers/bodies.ts';
import { fileReaders } from './readers/files.ts';
import { headReaders } from './readers/heads.ts';
import { vendorReaders } from './readers/vendors.ts';

for (const [what, readers] of [
  ['request lines, headers and fields', headReaders],
  ['bodies', bodyReaders],
  ['files', fileReaders],
  ['messages and vendors’ responses', vendorReaders],
] as const) {
  test.serial(`the time to read ${what} grows no faster than what is read`, async (t) => {
    t.timeout(300_000);
    const slow: string[] = [];
    for (const reader of readers) slow.push(...(await findSlowInputs(reader)));
    t.deepEqual(slow, []);
  });
}
