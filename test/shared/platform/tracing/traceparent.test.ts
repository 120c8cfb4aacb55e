import test from 'ava';
import {
  isTraceparent,
  readTraceparent,
  writeTraceparent,
} from '../../../../shared/platform/tracing/traceparent.ts';

const valid = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';

test('a traceparent is read and written without loss', (t) => {
  t.true(isTraceparent(valid));
  t.is(writeTraceparent(readTraceparent(valid)), valid);
  t.deepEqual(readTraceparent(valid), {
    traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
    spanId: '00f067aa0ba902b7',
    traceFlags: 1,
  });
});

for (const [what, text] of Object.entries({
  'an empty text': '',
  'another version': valid.replace(/^00/, '01'),
  'the invalid version': valid.replace(/^00/, 'ff'),
  'upper case': valid.toUpperCase(),
  'a trace id of zeros': `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`,
  'a span id of zeros': `00-4bf92f3577b34da6a3ce929d0e0e4736-${'0'.repeat(16)}-01`,
  'a further field': `${valid}-00`,
  'a short id': valid.slice(1),
  'two headers, joined': `${valid}, ${valid}`,
  'a space around it': ` ${valid}`,
  'a line feed behind it': `${valid}\n`,
}))
  test(`${what} is no traceparent`, (t) => {
    t.false(isTraceparent(text));
  });
