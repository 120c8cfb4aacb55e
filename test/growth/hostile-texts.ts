/** Fragments that mean something to some parser, or to none. */
const fragments = [
  'a',
  'A',
  '0',
  ' ',
  '\t',
  '\n',
  '\r\n',
  '\0',
  'é',
  '\u00a0',
  '😀',
  '"',
  "'",
  '\\',
  '\\"',
  '/',
  '<',
  '>',
  '[',
  ']',
  '{',
  '}',
  '(',
  ')',
  '<a',
  '</',
  '{"a":',
  '[{',
  '"a",',
  '&',
  '=',
  ';',
  ',',
  '.',
  '-',
  '+',
  '_',
  '%',
  '@',
  ':',
  '#',
  '?',
  '!',
  '*',
  '|',
  '~',
  '^',
  '$',
  '`',
  'a&',
  'a=',
  'a=1&',
  'a;',
  '; ',
  ', ',
  ' ,',
  'a,',
  'a b ',
  'a.',
  '%2',
  '%41',
  '1.',
  'e9',
  '..',
  '//',
];

export interface HostileText {
  /** Which text it is, for messages. */
  readonly name: string;
  readonly make: (size: number) => string;
}

/** Surroundings of a repeated fragment. The last character often makes a match fail at the very end. */
interface Frame {
  readonly head?: string;
  readonly tail?: string;
}

const generalFrames: readonly Frame[] = [{}, { tail: '\u0001' }];
const quotedFrame: Frame = { head: '"', tail: '\\' };
/** Fragments to put between what a reader needs at the beginning and at the end. */
const framedFragments = ['a', '0', ' ', '"', '\\', '<', '[', '=', ';', ',', '/', '\n'];

/**
 * Lists texts that consist of a repeated fragment, or of two in turn: runs of one character, many tiny items, nested
 * brackets, unterminated quotes, and so on.
 * @param tokens what is specific to the reader
 * @param frames what a text must begin or end with to be read at all, in addition to plain surroundings
 */
export function* listHostileTexts(
  tokens: readonly string[] = [],
  frames: readonly Frame[] = [],
): Generator<HostileText> {
  const pairs = tokens.flatMap((one, i) =>
    tokens.slice(i).map((other) => (one === other ? one : one + other)),
  );
  const mixed = tokens.flatMap((one) => ['a', ' '].map((other) => one + other));
  const specific = new Set([...pairs, ...mixed]);
  for (const fragment of fragments)
    yield* listFramed(fragment, /["\\]/.test(fragment) ? [...generalFrames, quotedFrame] : generalFrames);
  for (const fragment of specific) yield* listFramed(fragment, [...generalFrames, quotedFrame, ...frames]);
  for (const fragment of framedFragments) if (!specific.has(fragment)) yield* listFramed(fragment, frames);
}

function* listFramed(fragment: string, frames: readonly Frame[]): Generator<HostileText> {
  for (const { head = '', tail = '' } of frames) {
    yield {
      name: `${JSON.stringify(head)} + ${JSON.stringify(fragment)} × n + ${JSON.stringify(tail)}`,
      make: (size) => head + fragment.repeat(Math.max(1, Math.floor(size / fragment.length))) + tail,
    };
  }
}
