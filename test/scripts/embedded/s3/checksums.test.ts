import { createHash } from 'node:crypto';
import test from 'ava';
import { createChecksum, isChecksumValue } from '../../../../scripts/embedded/s3/checksums.ts';
import type { ChecksumAlgorithm } from '../../../../scripts/embedded/s3/checksums.ts';

// The check values of the CRC catalogue: the checksum of the nine characters "123456789".
const checkValues: Partial<Record<ChecksumAlgorithm, string>> = {
  crc32: 'cbf43926',
  crc32c: 'e3069283',
  crc64nvme: 'ae8b14860a799888',
  sha1: createHash('sha1').update('123456789').digest('hex'),
  sha256: createHash('sha256').update('123456789').digest('hex'),
};

for (const [algorithm, expected] of Object.entries(checkValues)) {
  test(`${algorithm} gives the published check value, wherever the bytes are split`, (t) => {
    const checksum = createChecksum(algorithm as ChecksumAlgorithm);
    for (const part of ['1', '2345', '', '6789']) checksum.update(Buffer.from(part));
    t.is(Buffer.from(checksum.digest(), 'base64').toString('hex'), expected);
  });
}

test('only canonical base64 of the right length is accepted as a checksum value', (t) => {
  t.true(isChecksumValue('crc32', 'AAAAAA=='));
  for (const value of ['', 'AAAAAA', 'AAAAAAA=', 'AAAAAB==', '0', 'cbf43926']) {
    t.false(isChecksumValue('crc32', value), value);
  }
});
