import { setImmediate as nextTurn } from 'node:timers/promises';
import test from 'ava';
import { findCollector } from '../../../shared/platform/runtime/idle-collection.ts';
import { readBoundedBody } from '../../../workers/outbound/read-bounded-body.ts';

const collectGarbage = findCollector();

test('a body in chunks of one byte takes little more memory than its bytes', async (t) => {
  const bodyBytes = 300_000;
  let heldBytes = 0;
  async function* sendBytes(): AsyncGenerator<Buffer> {
    // An HTTP parser cuts chunks out of a received packet in this way.
    const packet = Buffer.alloc(bodyBytes, 'x');
    const measure = (): number => {
      collectGarbage();
      return process.memoryUsage().heapUsed;
    };
    await nextTurn();
    const before = measure();
    for (let at = 0; at < bodyBytes; at++) yield packet.subarray(at, at + 1);
    heldBytes = measure() - before;
  }
  const body = await readBoundedBody({}, sendBytes(), bodyBytes);
  t.true('bytes' in body && body.bytes.equals(Buffer.alloc(bodyBytes, 'x')));
  t.true(heldBytes < 5_000_000, `${heldBytes} bytes`);
});
