import test from 'ava';
import { countTokens as countWhole } from 'gpt-tokenizer/encoding/o200k_base';
import {
  CountingTurn,
  countTokens,
  countTokensAsync,
  loadTokenizer,
} from '../../../shared/catalog/count-tokens.ts';
import { readThreadMs } from '../../support/thread-clock.ts';

const prose = {
  english: `It wasn't until 1889 that the tower opened; critics (there'd been 300 of them) had called it "a truly
tragic street lamp".  By the end, though, 1,896,987 people came.\n\n\tconst height = 330; // metres\r\n`,
  russian: 'Съешь же ещё этих мягких французских булок, да выпей чаю — «непременно» с лимоном, №7!\n',
  chinese: '人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。',
  thai: 'มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ ต่างมีเหตุผลและมโนธรรม "ดี" ',
  arabic: 'يولد جميع الناس أحراراً متساوين في الكرامة والحقوق، وقد وهبوا عقلاً وضميراً. ',
  emoji: 'Ship it 🚢👩‍🚀 today! 🎉🎉🎉 done 👍🏽, next… ',
  code: `export const f=(a:number[])=>a.map((x)=>x*2).filter(Boolean);/* https://example.org/a/b?c=d&e=%20 */{"k":[1,2,null]}\n`,
};

function makeRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

function makeText(length: number, seed: number, pickCode: (random: () => number) => number): string {
  const random = makeRandom(seed);
  const codes = Array.from({ length }, () => pickCode(random));
  const parts: string[] = [];
  for (let i = 0; i < codes.length; i += 4096) parts.push(String.fromCharCode(...codes.slice(i, i + 4096)));
  return parts.join('');
}

/**
 * Measures the CPU time of this thread, which is not affected by other work on the machine or by other tests of this
 * process.
 */
function measureMs(run: () => unknown): number {
  const startedMs = readThreadMs();
  run();
  return readThreadMs() - startedMs;
}

async function measureMsAsync(run: () => Promise<unknown>): Promise<number> {
  const startedMs = readThreadMs();
  await run();
  return readThreadMs() - startedMs;
}

/** A different text for each seed, because words that were tokenized before are cached. */
const hostileTexts: Record<string, (length: number, seed?: number) => string> = {
  'one letter': (length) => 'a'.repeat(length),
  spaces: (length) => ' '.repeat(length),
  newlines: (length) => '\n'.repeat(length),
  'random letters': (length, seed = 7) => makeText(length, seed, (random) => 97 + Math.floor(random() * 26)),
  'random capitals': (length, seed = 7) => makeText(length, seed, (random) => 65 + Math.floor(random() * 26)),
  'random unicode': (length, seed = 7) =>
    makeText(length, seed, (random) => 1 + Math.floor(random() * 0xfffe)),
  'lone surrogates': (length, seed = 7) =>
    makeText(length, seed, (random) => 0xdc00 + Math.floor(random() * 1024)),
  'special tokens': (length) => '<|endoftext|>'.repeat(Math.floor(length / 13)),
};

test.before(() => {
  loadTokenizer();
});

for (const [name, sample] of Object.entries(prose)) {
  test(`long ${name} text has exactly as many tokens when tokenized in blocks as when tokenized whole`, async (t) => {
    const text = sample.repeat(Math.ceil(20_000 / sample.length));
    const whole = countWhole(text);
    t.is(countTokens(text), whole);
    t.is(await countTokensAsync(text, { limit: whole }), whole);
    t.is(await countTokensAsync(text, { limit: whole - 1 }), null);
  });
}

test('the token count of text in mixed scripts is exact, wherever its blocks end', (t) => {
  const random = makeRandom(42);
  const words = Object.values(prose).flatMap((sample) => sample.split(/(?<=\s)/u));
  for (let round = 0; round < 40; round++) {
    let text = '';
    while (text.length < 9000) text += words[Math.floor(random() * words.length)] ?? '';
    t.is(countTokens(text), countWhole(text));
  }
});

test('a text has at most one token per UTF-8 byte, and at least one per 128 bytes', async (t) => {
  for (const text of [...Object.values(prose), ...Object.values(hostileTexts).map((make) => make(5000))]) {
    const bytes = Buffer.byteLength(text);
    const count = countTokens(text);
    t.true(count <= bytes);
    t.true(count * 128 >= bytes);
  }
  t.is(countTokens(''), 0);
  t.is(await countTokensAsync('', { limit: 0 }), 0);
});

test('the names of special tokens are tokenized as plain text', (t) => {
  t.true(countTokens('<|endoftext|>') > 1);
  t.notThrows(() => countTokens('a<|im_start|>system<|im_end|><|endofprompt|>'));
});

for (const [name, make] of Object.entries(hostileTexts)) {
  test.serial(`the time for ${name} grows linearly`, (t) => {
    const length = name.startsWith('random') || name.startsWith('lone') ? 100_000 : 1_000_000;
    countTokens(make(20_000, 1));
    // Compares the same amount of text in four parts and in one, so that caching and garbage collection affect both.
    const attempt = (seed: number): number => {
      const quarters = [0, 1, 2, 3].map((i) => make(length / 4, seed + i));
      const quartersMs = measureMs(() => quarters.forEach((text) => countTokens(text)));
      const whole = make(length, seed + 4);
      const wholeMs = measureMs(() => countTokens(whole));
      // Times under 50 ms are too short to compare.
      return wholeMs / Math.max(quartersMs, 50);
    };
    // Linear work takes the same time, quadratic work four times as long. One good attempt of three is enough, because
    // another program may have slowed an attempt.
    let best = Infinity;
    for (let i = 0; i < 3 && best >= 2; i++) best = Math.min(best, attempt(2 + 5 * i));
    t.true(best < 2, `${best} times as long as in four parts`);
  });
}

test('each split of a word changes its token count by at most two', (t) => {
  const text = 'a'.repeat(8000);
  const whole = countWhole(text);
  t.true(Math.abs(countTokens(text) - whole) <= 8);
});

test.serial('with a limit, tokenizing stops soon after the limit, even for a very long text', async (t) => {
  const text = hostileTexts['random letters']!(1_000_000);
  const ms = await measureMsAsync(async () => {
    t.is(await countTokensAsync(text, { limit: 1000 }), null);
    t.is(await countTokensAsync(text, { limit: 25_000 }), null);
  });
  t.true(ms < measureMs(() => countTokens(text.slice(0, 250_000))));
});

test.serial('the process can do other work while it tokenizes a long prompt', async (t) => {
  const text = prose.russian.repeat(25_000);
  let turns = 0;
  let isDone = false;
  const spin = (): void => {
    turns += 1;
    if (!isDone) setImmediate(spin);
  };
  setImmediate(spin);
  const count = await countTokensAsync(text, { limit: 1e9 });
  isDone = true;
  t.is(count, countTokens(text));
  t.true(turns >= Math.floor(text.length / 65_536) - 1, `${turns} turns`);
});

test("tokenizing stops with the signal's reason", async (t) => {
  const controller = new AbortController();
  const reason = new Error('the caller left');
  const counting = countTokensAsync(prose.english.repeat(20_000), { limit: 1e9, signal: controller.signal });
  controller.abort(reason);
  t.is(await t.throwsAsync(counting), reason);
  t.is(await t.throwsAsync(countTokensAsync('short', { limit: 10, signal: controller.signal })), reason);
});

test('the async token count is null above the limit', async (t) => {
  t.is(await countTokensAsync(prose.english.repeat(100), { limit: 100 }), null);
  t.is(await countTokensAsync('hello world', { limit: 2 }), 2);
});

test.serial(
  'many concurrent counts block the event loop for no longer at a time than one count',
  async (t) => {
    const text = prose.russian.repeat(3_000);
    const alone = Math.floor(text.length / 65_536);
    let turns = 0;
    let isDone = false;
    const spin = (): void => {
      turns += 1;
      if (!isDone) setImmediate(spin);
    };
    setImmediate(spin);
    const counts = await Promise.all(Array.from({ length: 8 }, () => countTokensAsync(text, { limit: 1e9 })));
    isDone = true;
    t.deepEqual(new Set(counts).size, 1);
    // After the first, each block of each count ran in its own event-loop iteration.
    t.true(turns >= 8 * (alone - 1), `${turns} turns`);
  },
);

test('at most 2 000 bytes are tokenized at a time, in any script', async (t) => {
  for (const character of ['a', 'я', '嗯', '\u200d', '🎉', '\ud800']) {
    const text = character.repeat(7_000);
    const blocks: number[] = [];
    class Recorder extends CountingTurn {
      override spend(chars: number): boolean {
        blocks.push(chars);
        return false;
      }
    }
    await countTokensAsync(text, { limit: 1_000_000, turn: new Recorder() });
    t.is(
      blocks.reduce((sum, chars) => sum + chars, 0),
      text.length,
    );
    const bytesPerChar = Buffer.byteLength(character) / character.length;
    t.true(Math.max(...blocks) * bytesPerChar <= 2_000, `${character}: ${Math.max(...blocks)} characters`);
  }
});

test('a short text is tokenized immediately, and a long one waits for its turn before any of it is tokenized', async (t) => {
  const listSteps = async (text: string): Promise<string[]> => {
    const steps: string[] = [];
    class Recorder extends CountingTurn {
      override spend(): boolean {
        steps.push('counted');
        return false;
      }
      override async next(): Promise<void> {
        steps.push('waited');
        await super.next();
      }
    }
    await countTokensAsync(text, { limit: 1_000_000, turn: new Recorder() });
    return steps;
  };
  t.false((await listSteps('word '.repeat(1_000))).includes('waited'));
  const [first, ...rest] = await listSteps('word '.repeat(4_000));
  t.is(first, 'waited');
  t.false(rest.includes('waited'));
});
