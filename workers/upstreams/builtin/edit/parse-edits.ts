/** One operation on an image. Sizes are in pixels. */
export type ImageEdit =
  | { readonly kind: 'resize'; readonly width: number; readonly height: number }
  | { readonly kind: 'scale'; readonly percent: number }
  /** Clockwise. */
  | { readonly kind: 'rotate'; readonly degrees: number }
  | { readonly kind: 'grayscale' }
  | { readonly kind: 'blur'; readonly sigma: number }
  | { readonly kind: 'caption'; readonly text: string };

/** Text beyond this is ignored. */
const maxChars = 4_000;
const filler = String.raw`(?: (?:it|this|that|the|an?|by|to|of|with|image|picture|photo|saying|reading|says|text|words?))*`;
const quoted = String.raw`"([^"]*)"|“([^”]*)”|«([^»]*)»|'([^']*)'`;
const turns = String.raw`left|right|clockwise|(?:counter|anti)-?clockwise|upside down|around`;
const sigmas = { slight: 2, plain: 5, strong: 15 };

interface EditPattern {
  readonly pattern: RegExp;
  /** Returns null if the match is not an operation after all. */
  readonly read: (match: RegExpExecArray) => ImageEdit | null;
}

const patterns: readonly EditPattern[] = [
  {
    // An unquoted caption ends at the next step: "caption: hello; then blur".
    pattern: new RegExp(
      String.raw`\b(?:caption|label|title|write|(?:add|with)(?: the)? (?:text|words))\b${filler}:? ?(?:${quoted}|([^;]+?)(?= ?(?:;|,? (?:and )?then\b|$)))`,
      'giu',
    ),
    read: ([, ...texts]) => {
      const text = texts.find((one) => one !== undefined)?.trim() ?? '';
      return text === '' ? null : { kind: 'caption', text };
    },
  },
  {
    pattern:
      /\b(?:resize|scale|shrink|reduce|enlarge)\b[^;,\d]{0,40}(\d{1,5}) ?(?:x|×|\*|by) ?(\d{1,5})\b/giu,
    read: ([, width, height]) => ({ kind: 'resize', width: Number(width), height: Number(height) }),
  },
  {
    pattern: /\b(resize|scale|shrink|reduce|enlarge)\b([^;,\d]{0,40}?)(\d{1,4}) ?(?:%|percent\b)/giu,
    read: ([, verb = '', between = '', number]) => ({
      kind: 'scale',
      percent: readPercent(verb.toLowerCase(), / by /i.test(between), Number(number)),
    }),
  },
  {
    pattern: /\b(?:resize|scale|shrink|reduce|enlarge)\b[^;,\d]{0,20}\b(half|double|twice)\b/giu,
    read: ([, word]) => ({ kind: 'scale', percent: word?.toLowerCase() === 'half' ? 50 : 200 }),
  },
  {
    pattern: new RegExp(
      String.raw`\b(?:rotate|turn)\b${filler}(?: (${turns})\b)?${filler}(?: (-?\d{1,4}(?:\.\d{1,3})?) ?(?:°|degrees?\b|deg\b)?)?${filler}(?: (${turns})\b)?`,
      'giu',
    ),
    read: ([, before, number, after]) => readRotation(before ?? after ?? null, number ?? null),
  },
  {
    pattern: /\bgr[ae]y-?\s?scale\b|\bblack[- ](?:and|&)[- ]white\b|\bmonochrome\b|\bdesaturated?\b/giu,
    read: () => ({ kind: 'grayscale' }),
  },
  {
    pattern: new RegExp(
      String.raw`(?:\b(slightly|strongly|heavily) )?\bblur(?:red|ry)?\b${filler}(?: (slightly|strongly|heavily)\b)?(?: (?:sigma |radius )?(\d{1,3}(?:\.\d{1,3})?))?`,
      'giu',
    ),
    read: ([, before, after, number]) => ({ kind: 'blur', sigma: readSigma(before ?? after, number) }),
  },
];

/** Returns the operations in a prompt, in order; empty if there are none. */
export function parseEdits(prompt: string): ImageEdit[] {
  const text = prompt
    .slice(0, maxChars)
    .split('\n')
    .map((line) => line.trim().replaceAll(/\s+/gu, ' '))
    .filter((line) => line !== '')
    .join('; ');
  const matches = patterns.map((pattern) => new NextMatch(text, pattern));
  const edits: ImageEdit[] = [];
  for (let at = 0; at < text.length;) {
    const next = findFirst(matches, at);
    if (next === null) break;
    if (next.edit !== null) edits.push(next.edit);
    at = next.end;
  }
  return edits;
}

/** The next match of one pattern. It is searched again only once another operation has passed it. */
class NextMatch {
  readonly read: EditPattern['read'];
  readonly #text: string;
  readonly #pattern: RegExp;
  #match: RegExpExecArray | null;

  constructor(text: string, { pattern, read }: EditPattern) {
    this.#text = text;
    this.#pattern = pattern;
    this.read = read;
    this.#match = this.#search(0);
  }

  /** Returns the earliest match at or after an index. */
  after(from: number): RegExpExecArray | null {
    if (this.#match !== null && this.#match.index < from) this.#match = this.#search(from);
    return this.#match;
  }

  #search(from: number): RegExpExecArray | null {
    this.#pattern.lastIndex = from;
    return this.#pattern.exec(this.#text);
  }
}

/** Returns the earliest match at or after an index, so that words in a caption are not taken for operations. */
function findFirst(
  matches: readonly NextMatch[],
  from: number,
): { readonly edit: ImageEdit | null; readonly end: number } | null {
  let first: { match: RegExpExecArray; read: EditPattern['read'] } | null = null;
  for (const next of matches) {
    const match = next.after(from);
    if (match !== null && (first === null || match.index < first.match.index))
      first = { match, read: next.read };
  }
  return first && { edit: first.read(first.match), end: first.match.index + first.match[0].length };
}

/** "Shrink by 20 %" results in 80 %, "shrink to 20 %" in 20 %. */
function readPercent(verb: string, isChange: boolean, number: number): number {
  if (!isChange) return number;
  if (verb === 'shrink' || verb === 'reduce') return Math.max(0, 100 - number);
  return verb === 'enlarge' ? 100 + number : number;
}

function readRotation(direction: string | null, number: string | null): ImageEdit | null {
  if (direction === null && number === null) return null;
  const word = direction?.toLowerCase() ?? '';
  const degrees = number === null ? (/upside|around/.test(word) ? 180 : 90) : Number(number);
  const isLeft = word === 'left' || word.startsWith('counter') || word.startsWith('anti');
  return { kind: 'rotate', degrees: isLeft ? -degrees : degrees };
}

function readSigma(adverb: string | undefined, number: string | undefined): number {
  // Sharp accepts sigmas of 0.3 or more; above 100, nothing is recognizable.
  if (number !== undefined) return Math.min(100, Math.max(0.3, Number(number)));
  return adverb === undefined
    ? sigmas.plain
    : adverb.toLowerCase() === 'slightly'
      ? sigmas.slight
      : sigmas.strong;
}
