import { randomUUID } from 'node:crypto';
import test from 'ava';
import fc from 'fast-check';
import {
  decodeFrames,
  decodeOffer,
  encodeFrame,
  encodeHeader,
  encodeOffer,
  frameKinds,
  kindOffset,
  packRequestId,
  type Frame,
} from '../../../../shared/work/replies/frame.ts';

const frame = fc.record({
  requestId: fc.uuid(),
  attempt: fc.nat(65_535),
  sequence: fc.nat(2 ** 32 - 1),
  kind: fc.constantFrom(...frameKinds),
  tokens: fc.nat(2 ** 32 - 1),
  payload: fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
});

test('frames in one message are decoded as they were encoded', (t) => {
  fc.assert(
    fc.property(fc.array(frame, { maxLength: 8 }), (frames: Frame[]) => {
      t.deepEqual(decodeFrames(Buffer.concat(frames.map(encodeFrame))), frames);
    }),
  );
  t.pass();
});

test('frame kinds have fixed byte values, because stored frames outlive a release', (t) => {
  const byteOf = (kind: Frame['kind']): number | undefined =>
    encodeFrame({
      requestId: randomUUID(),
      attempt: 1,
      sequence: 0,
      kind,
      tokens: 0,
      payload: Buffer.alloc(0),
    })[kindOffset];
  t.deepEqual(frameKinds.map(byteOf), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
});

test('decoding a truncated or unrelated message is an error, never a frame', (t) => {
  const bytes = encodeFrame({
    requestId: randomUUID(),
    attempt: 1,
    sequence: 0,
    kind: 'delta',
    tokens: 1,
    payload: Buffer.from('hello'),
  });
  for (let length = 1; length < bytes.length; length++)
    t.throws(() => decodeFrames(bytes.subarray(0, length)), { instanceOf: RangeError });
  t.throws(() => decodeFrames(Buffer.alloc(64)), { instanceOf: RangeError });
});

test('an encoded offer decodes to the exact length in bytes', (t) => {
  fc.assert(
    fc.property(fc.nat(2 ** 32 - 1), (length) => {
      t.is(decodeOffer(encodeOffer(length)), length);
    }),
  );
  t.throws(() => encodeOffer(2 ** 32), { instanceOf: RangeError });
});

test('a frame written as a header and payload parts has the same bytes as one in a single buffer', (t) => {
  fc.assert(
    fc.property(frame, fc.array(fc.uint8Array({ maxLength: 50 })), (one: Frame, parts) => {
      const payload = Buffer.concat(parts);
      const header = encodeHeader(packRequestId(one.requestId), one, payload.length);
      t.deepEqual(Buffer.concat([header, ...parts]), encodeFrame({ ...one, payload }));
    }),
  );
});
