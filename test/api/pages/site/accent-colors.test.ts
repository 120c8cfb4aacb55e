import test from 'ava';
import fc from 'fast-check';
import { contrastOf, deriveAccent, readColor } from '../../../../api/pages/site/accent-colors.ts';

const surfaces = {
  light: ['#f8f9f8', '#ffffff', '#f1f3f2'],
  dark: ['#0f1213', '#16191b', '#1f2426'],
} as const;

test('every colour of an operator gives texts and buttons that can be read in both themes', (t) => {
  const color = fc
    .integer({ min: 0, max: 0xffffff })
    .map((value) => `#${value.toString(16).padStart(6, '0')}`);
  const edges = ['#000000', '#ffffff', '#ffff00', '#0000ff', '#808080', '#767676'];
  fc.assert(
    fc.property(
      fc.oneof(fc.constantFrom(...edges), color),
      fc.constantFrom('light', 'dark'),
      (value, theme) => {
        const { accent, onAccent, tint } = deriveAccent(value, theme);
        const read = readColor(accent);
        for (const surface of surfaces[theme]) if (contrastOf(read, readColor(surface)) < 4.5) return false;
        return contrastOf(read, readColor(onAccent)) >= 4.5 && contrastOf(read, readColor(tint)) >= 4.5;
      },
    ),
    { numRuns: 500 },
  );
  t.pass();
});

test('a colour that can be read already is not changed', (t) => {
  t.is(deriveAccent('#0c6b66', 'light').accent, '#0c6b66');
  t.is(deriveAccent('#62cabf', 'dark').accent, '#62cabf');
});
