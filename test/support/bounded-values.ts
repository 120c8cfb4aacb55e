import fc from 'fast-check';

/** Valid and invalid values of a field, both including values at its bounds. Path and query values are strings. */
export interface BoundedField {
  readonly inside: fc.Arbitrary<unknown>;
  readonly outside: fc.Arbitrary<unknown>;
  /** Whether a request without the field is rejected. */
  readonly isRequired: boolean;
  /** Whether a value within the bounds can still be rejected, for example because it is not a real address. */
  readonly isSemantic: boolean;
}

type Options = Partial<Pick<BoundedField, 'isRequired' | 'isSemantic'>> & { readonly isNullable?: boolean };

/** Characters of one, two, three and four bytes, and some that end a string, line or header in other formats. */
const characters = ['a', 'ж', '中', '\u{1f511}', '\0', '\n', '\r', '<', '"', '\u202e', '\u2028'];
const ofLength = (length: number): fc.Arbitrary<string> =>
  fc.constantFrom(...characters.map((character) => character.repeat(length)));

/** Values that are not strings, including some that a MongoDB query would interpret as operators. */
const nonStrings = fc.constantFrom<unknown>(
  0,
  1,
  -1.5,
  true,
  false,
  [],
  {},
  ['a'],
  { $gt: '' },
  { $ne: null },
);
const nonNumbers = fc.constantFrom<unknown>('', '1', 'x', true, [], [1], {}, { $gt: 0 });

function field(
  inside: fc.Arbitrary<unknown>,
  outside: fc.Arbitrary<unknown>,
  options: Options,
): BoundedField {
  const { isRequired = false, isSemantic = false, isNullable = false } = options;
  const none = fc.constant(null);
  return {
    inside: isNullable ? fc.oneof(inside, none) : inside,
    outside: isNullable ? outside : fc.oneof({ arbitrary: outside, weight: 9 }, none),
    isRequired,
    isSemantic,
  };
}

/** A string of this length in characters; a character outside the Basic Multilingual Plane is one character. */
export function text(min: number, max: number, options: Options = {}): BoundedField {
  const any = fc.string({ unit: 'binary', minLength: min, maxLength: max });
  const longer = fc.oneof(ofLength(max + 1), ofLength(max * 10));
  return field(
    fc.oneof(any, ofLength(min), ofLength(max)),
    fc.oneof(longer, min === 0 ? longer : ofLength(min - 1), nonStrings),
    options,
  );
}

const notPlain = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u;
/** Some of the characters that make a text appear different from its content. */
export const misleadingCharacters = [
  '\0',
  '\t',
  '\n',
  '\r',
  '\x7f',
  '\x85',
  '\u2028',
  '\u2029',
  '\u202a',
  '\u202e',
  '\u2066',
  '\u2069',
];

/** Texts of only whitespace and invisible characters. */
export const blankTexts = [
  ' ',
  ' '.repeat(80),
  '\u00a0',
  '\u2003\u3000',
  '\u200b',
  '\u2060\ufeff',
  '\u00ad',
  '\u3164',
];
const visibleCharacter = /[^\p{White_Space}\p{Default_Ignorable_Code_Point}\p{Cf}]/u;

/** A visible single-line text of this length, without misleading characters. */
export function plainText(min: number, max: number, options: Options = {}): BoundedField {
  const { inside, outside, ...rest } = text(min, max, options);
  const plain = inside.filter(
    (value) => typeof value !== 'string' || (!notPlain.test(value) && visibleCharacter.test(value)),
  );
  const wrong = fc.constantFrom(...misleadingCharacters).map((character) => `a${character}b`);
  return { ...rest, inside: plain, outside: fc.oneof(outside, wrong, fc.constantFrom(...blankTexts)) };
}

/** A text with a meaning beyond its length, such as an address; `meant` supplies meaningful values. */
export function meaningfulText(
  min: number,
  max: number,
  meant: fc.Arbitrary<unknown>,
  options: Options = {},
): BoundedField {
  const bounded = text(min, max, options);
  return { ...bounded, inside: fc.oneof(bounded.inside, meant), isSemantic: true };
}

const wrongUuids = [
  '',
  'x',
  '0f6d2c0a-51f4-4f0e-8a9b-2f3f5f0f6f1',
  '0f6d2c0a-51f4-4f0e-8a9b-2f3f5f0f6f111',
  '0f6d2c0a51f44f0e8a9b2f3f5f0f6f11',
  '{0f6d2c0a-51f4-4f0e-8a9b-2f3f5f0f6f11}',
  '0f6d2c0a-51f4-4f0e-8a9b-2f3f5f0f6f1g',
  '0f6d2c0a-51f4-4f0e-8a9b-2f3f5f0f6f11 ',
  '0f6d2c0a-51f4-4f0e-8a9b-2f3f5f0f6f11\n',
  '０f6d2c0a-51f4-4f0e-8a9b-2f3f5f0f6f11',
];

const anyUuid = fc.oneof(
  fc.uuid(),
  fc.uuid().map((uuid) => uuid.toUpperCase()),
);

export function uuid(options: Options = {}): BoundedField {
  return field(anyUuid, fc.oneof(fc.constantFrom(...wrongUuids), nonStrings), options);
}

export function choice(values: readonly string[], options: Options = {}): BoundedField {
  const others = values.flatMap((value) => [value.toUpperCase(), ` ${value}`, `${value}\0`, '']);
  return field(fc.constantFrom(...values), fc.oneof(fc.constantFrom(...others), nonStrings), options);
}

export function flag(options: Options = {}): BoundedField {
  return field(fc.boolean(), fc.constantFrom<unknown>('', 'true', 0, 1, [], {}), options);
}

/** A list of points with two coordinates each. */
export function points(bounds: {
  readonly min: number;
  readonly max: number;
  readonly limit: number;
}): BoundedField {
  const { min, max, limit } = bounds;
  const inRange = fc.oneof(
    fc.double({ min: 0, max: limit, noNaN: true }),
    fc.constantFrom(0, limit, 0.5, limit - 0.001),
  );
  const wrong = fc.oneof(fc.constantFrom<unknown>(-1, -0.001, limit + 0.001, limit + 1, 1e308), nonNumbers);
  const listOf = (x: fc.Arbitrary<unknown>, minLength: number, maxLength: number) =>
    fc.array(fc.record({ x, y: inRange }), { minLength, maxLength });
  return field(
    listOf(inRange, min, max),
    fc.oneof(
      listOf(inRange, 0, min - 1),
      listOf(inRange, max + 1, max + 20),
      listOf(wrong, min, max),
      fc.constantFrom<unknown>({}, 'x', 0, [1, 2], [{ x: 1 }, { y: 1 }], [{ x: 1, y: 1 }, null]),
    ),
    { isRequired: true },
  );
}

const nonIntegers = [
  'x',
  '',
  '1.5',
  '1e3',
  '0x10',
  ' 1',
  '+1',
  '--1',
  'NaN',
  'Infinity',
  '١',
  '9'.repeat(400),
];

/** An integer in a path or query. */
export function integer(bounds: { readonly min?: number; readonly max?: number } = {}): BoundedField {
  const { min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER } = bounds;
  const beyond = [
    ...(bounds.min === undefined ? [] : [min - 1, min - 1_000]),
    ...(bounds.max === undefined ? [] : [max + 1, max * 1_000]),
  ].map(String);
  return field(
    fc.oneof(fc.integer({ min: Math.max(min, -(2 ** 40)), max }), fc.constantFrom(min, max)).map(String),
    fc.constantFrom(...nonIntegers, ...beyond),
    {},
  );
}

const invalidDates = [
  '',
  'x',
  '2025-13-01',
  '2025-02-30',
  '2025-1-1',
  '01.02.2025',
  '2025-01-01T00:00:00Z',
  '20250101',
];

/** A date in a query. */
export function day(): BoundedField {
  const days = fc.date({ min: new Date('1970-01-01'), max: new Date('2100-01-01'), noInvalidDate: true });
  return field(
    days.map((date) => date.toISOString().slice(0, 10)),
    fc.constantFrom(...invalidDates),
    { isSemantic: true },
  );
}
