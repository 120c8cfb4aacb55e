import test from 'ava';
import fc from 'fast-check';
import { JsonStructure } from '../../../../api/http/bodies/json-structure.ts';
import { maxJsonDepth, maxJsonValues } from '../../../../shared/encoding/json-reader.ts';

const measure = (text: string) => new JsonStructure().push(Buffer.from(text));

test('the limits on depth and number of values are exact, and brackets and commas inside strings are ignored', (t) => {
  t.is(measure('['.repeat(maxJsonDepth) + ']'.repeat(maxJsonDepth)), null);
  t.is(measure('['.repeat(maxJsonDepth + 1)), 'too_deep');
  t.is(measure(`[${'1,'.repeat(maxJsonValues - 2)}1]`), null);
  t.is(measure(`[${'1,'.repeat(maxJsonValues)}1]`), 'too_many_values');
  t.is(measure(JSON.stringify([`[{,"\\`.repeat(maxJsonValues)])), null);
});

test('the measured depth and number of values do not depend on where the text is split into chunks', (t) => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 5 }), fc.nat(200), (text, at) => {
      const bytes = Buffer.from(text + '['.repeat(maxJsonDepth + 1));
      const structure = new JsonStructure();
      const violations = [structure.push(bytes.subarray(0, at)), structure.push(bytes.subarray(at))];
      return violations.includes('too_deep');
    }),
  );
  t.pass();
});
