import test from 'ava';
import * as fc from 'fast-check';
import { EventSkipper } from '../../../../api/requests/stored-responses/event-skipper.ts';

const write = (id: number, data: unknown): string => `id: ${id}\ndata: ${JSON.stringify(data)}\n\n`;

test('exactly the events after the given one are returned, wherever the stream is split', (t) => {
  // Data that looks like an event with the id.
  const data = fc.oneof(fc.string(), fc.constantFrom('\n\nid: 3\n', 'id: 3\n', '\n\n', 'id: 3'));
  fc.assert(
    fc.property(
      fc.array(data, { minLength: 1, maxLength: 12 }),
      fc.nat(11),
      fc.infiniteStream(fc.integer({ min: 1, max: 30 })),
      (texts, last, lengths) => {
        const lastId = 1 + (last % texts.length);
        const events = texts.map((text, i) => write(i + 1, text));
        const bytes = Buffer.from(events.join(''));
        const skipper = new EventSkipper(String(lastId));
        const passed: Buffer[] = [];
        for (let at = 0; at < bytes.length;) {
          const end = at + lengths.next().value;
          passed.push(skipper.take(bytes.subarray(at, end)));
          at = end;
        }
        t.is(Buffer.concat(passed).toString(), events.slice(lastId).join(''));
      },
    ),
    { numRuns: 500 },
  );
});

test('without an id everything is returned, and after an id that does not occur nothing', (t) => {
  const bytes = Buffer.from(write(1, 'a') + write(2, 'b'));
  t.deepEqual(new EventSkipper(null).take(bytes), bytes);
  t.is(new EventSkipper('12').take(bytes).length, 0);
});
