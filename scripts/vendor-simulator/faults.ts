/**
 * Faults that the simulator can produce. They come from the options, from settings made while it runs, from the
 * header `x-simulate`, from the model's name and from the API key. Later ones override earlier ones. In the last three,
 * they are words joined with `+`, optionally with a number: `gpt-sim+slow-300+cut-5`, key `sk-sim+exhausted`. A gateway
 * passes names and keys through unchanged, but not headers.
 */
export interface Faults {
  /** Respond with this status instead. */
  readonly status?: number;
  /** Sent as `retry-after-ms`, and rounded up to seconds as `retry-after`, with any status of at least 400. */
  readonly retryAfterMs?: number;
  /** Fail this share of the calls, 0..1, with `status` or 500. The selection is random but the same in every run. */
  readonly failRate?: number;
  /** Wait before the first byte of the response. */
  readonly delayMs?: number;
  /** Send the head, then nothing until the caller disconnects. */
  readonly hangsAfterHead?: boolean;
  /** Drop the connection after this many bytes of the body. */
  readonly cutAfterBytes?: number;
  /** Drop the connection after this many chunks of a stream. */
  readonly cutAfterChunks?: number;
  /** Stop sending after this many chunks of a stream, with the connection open. */
  readonly stallAfterChunks?: number;
  /** Send an error event after this many chunks of a stream, then end it. */
  readonly errorAfterChunks?: number;
  /** Respond 200 with a body that does not belong to the dialect. */
  readonly garbage?: boolean;
  /** Wait between two pieces of a stream. */
  readonly msPerToken?: number;
  /**
   * The chunks in which a stream reports its usage, if they differ from those of the dialect's vendor. `output` reports
   * only output tokens.
   */
  readonly usage?: 'missing' | 'first' | 'every' | 'finish' | 'output';
  /** Send each chunk that starts, finishes or reports usage twice, as some vendors do. */
  readonly duplicates?: boolean;
  /** Omit what ends a stream: the end mark, the finish, or both. */
  readonly noEnd?: 'mark' | 'finish' | 'both';
  /** The key is out of money. `402` if the vendor uses that status for it. */
  readonly exhausted?: true | '402';
  /** The key is unknown. */
  readonly revoked?: boolean;
  /** The key is known, but not allowed to do this. */
  readonly forbidden?: boolean;
  /** Repeat the key in the error message. */
  readonly echoesKey?: boolean;
  /** Reject embeddings of any batch with an input that contains this text. */
  readonly poison?: string;
  /** Report this many tokens per word for embedding inputs that contain "dear", like a different tokenizer would. */
  readonly dearTokens?: number;
  /** Report this many extra tokens per embedding input, like servers that add special tokens. */
  readonly specialTokens?: number;
  /** Return NaN, or numbers that are too large for a float32, for inputs that contain this text. */
  readonly overflow?: string;
  /** Return embeddings as numbers although base64 was requested. */
  readonly ignoresBase64?: boolean;
  /** Instead of each image: a text, invalid base64, or a PNG of a few kilobytes with far too many pixels. */
  readonly image?: 'text' | 'broken' | 'bomb';
}

type FaultWord = (number: number) => Faults;

/** The words in model names and keys. `FAULT_HELP` describes them. */
const FAULT_WORDS: Readonly<Record<string, FaultWord>> = {
  fail: (number) => ({ status: number >= 400 && number <= 599 ? number : 500 }),
  retry: (number) => ({ retryAfterMs: number }),
  flaky: (number) => ({ failRate: number / 100 }),
  slow: (number) => ({ delayMs: number }),
  hang: () => ({ hangsAfterHead: true }),
  cut: (number) => ({ cutAfterChunks: number }),
  cutbytes: (number) => ({ cutAfterBytes: number }),
  stall: (number) => ({ stallAfterChunks: number }),
  streamerror: (number) => ({ errorAfterChunks: number }),
  garbage: () => ({ garbage: true }),
  drip: (number) => ({ msPerToken: number }),
  nousage: () => ({ usage: 'missing' }),
  firstusage: () => ({ usage: 'first' }),
  everyusage: () => ({ usage: 'every' }),
  finishusage: () => ({ usage: 'finish' }),
  outputusage: () => ({ usage: 'output' }),
  duplicates: () => ({ duplicates: true }),
  nomark: () => ({ noEnd: 'mark' }),
  nofinish: () => ({ noEnd: 'finish' }),
  noend: () => ({ noEnd: 'both' }),
  exhausted: () => ({ exhausted: true }),
  exhausted402: () => ({ exhausted: '402' }),
  revoked: () => ({ revoked: true }),
  forbidden: () => ({ forbidden: true }),
  echokey: () => ({ echoesKey: true }),
  poison: () => ({ poison: 'poison' }),
  dear: (number) => ({ dearTokens: number }),
  special: (number) => ({ specialTokens: number }),
  overflow: () => ({ overflow: 'overflow' }),
  floats: () => ({ ignoresBase64: true }),
  textimage: () => ({ image: 'text' }),
  brokenimage: () => ({ image: 'broken' }),
  bombimage: () => ({ image: 'bomb' }),
};

/** All known words. */
export const FAULT_NAMES: readonly string[] = Object.keys(FAULT_WORDS);

/** Words that need a number. */
const NUMBERED = new Set([
  'fail',
  'retry',
  'flaky',
  'slow',
  'cut',
  'cutbytes',
  'stall',
  'streamerror',
  'drip',
  'dear',
  'special',
]);

export const FAULT_HELP = `
In all dialects:
  fail-STATUS       respond with that status           slow-MS         wait before the response
  flaky-PERCENT     fail that share with 500           drip-MS         wait between the chunks of a stream
  retry-MS          send when to retry                 hang            send the headers, then nothing
  cut-N             cut a stream after N chunks        cutbytes-N      cut any response after N bytes
  stall-N           stop sending after N chunks        streamerror-N   error event after N chunks
  garbage           200 with an invalid body           duplicates      send start, finish and usage twice
  nousage           report no usage                    firstusage      report usage once, at the start
  everyusage        report full usage in every chunk   finishusage     report usage once, with the finish
  nofinish          omit the finish                    noend           omit finish and end mark
  revoked           the key is unknown                 forbidden       403: the key may not do this
  exhausted         the key has no money               echokey         repeat the key in errors
  exhausted402      the same with status 402; Gemini has no such response and sends 429

In some:
  nomark            omit the end mark: OpenAI's [DONE], Anthropic's message_stop, the ] of Gemini's arrays
  outputusage       Anthropic: the end of a stream reports only output tokens, as it used to
  poison            OpenAI and Gemini: refuse embeddings of inputs that contain "poison"
  dear-N            OpenAI: count N tokens for each word of inputs to embed that contain "dear"
  special-N         OpenAI: count N additional tokens for each input to embed
  overflow          OpenAI: embeddings that are not finite numbers, for inputs that contain "overflow"
  floats            OpenAI: embeddings as numbers although base64 was requested
  textimage         OpenAI and Gemini: text in base64 instead of each image
  brokenimage       OpenAI and Gemini: invalid base64 instead of each image
  bombimage         OpenAI and Gemini: a small PNG with 400 million pixels instead of each image
`;

/** Parses the faults in a model's name, a key or a header. Ignores unknown words. */
export function parseFaultWords(text: string): Faults {
  let faults: Faults = {};
  for (const word of text.split('+')) {
    const { name, number } = splitWord(word);
    const toFaults = Object.hasOwn(FAULT_WORDS, name) ? FAULT_WORDS[name] : undefined;
    if (toFaults !== undefined) {
      faults = { ...faults, ...toFaults(Number(number ?? '0')) };
    }
  }
  return faults;
}

/**
 * Returns the unknown words of a text that should contain only faults, so that a typo is reported instead of having
 * no effect.
 */
export function findUnknownFaultWords(text: string): readonly string[] {
  return text.split('+').filter((word) => {
    const { name, number } = splitWord(word);
    const isKnown = Object.hasOwn(FAULT_WORDS, name) && (number !== undefined || !NUMBERED.has(name));
    return word !== '' && !isKnown;
  });
}

function splitWord(word: string): { readonly name: string; readonly number: string | undefined } {
  const [, name = '', number] = /^([a-z]+\d*)(?:-(\d+))?$/.exec(word) ?? [];
  return { name, number };
}

/** Returns numbers in 0..1 that look random and are the same in every run (mulberry32). */
export function createRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
