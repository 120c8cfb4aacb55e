import test from 'ava';
import fc from 'fast-check';
import { encode } from 'gpt-tokenizer/encoding/cl100k_base';
import { maxTokenId } from '../../../../shared/contract/embeddings.ts';
import { countTokens } from '../../../../shared/catalog/count-tokens.ts';
import { decodeTokens, isTokenId, measureTokens } from '../../../../shared/preparing/tokens/decode-tokens.ts';
import { readThreadMs } from '../../../support/thread-clock.ts';

const asText = { disallowedSpecial: new Set<string>() };
const tokenIdLists = fc.array(fc.integer({ min: 0, max: maxTokenId }), { minLength: 1, maxLength: 200 });

test('the tokens of a text decode to it again, and their number equals the token count', (t) => {
  const texts = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' }));
  fc.assert(
    fc.property(
      texts.filter((text) => text.isWellFormed()),
      (text) => {
        const tokens = encode(text, asText);
        return decodeTokens(tokens) === text && tokens.length === countTokens(text, 'cl100k_base');
      },
    ),
  );
  for (const text of ['\ufeffwith a byte order mark', '<|endoftext|>', ' '.repeat(300), '👩‍🚀', 'ส\u0e31']) {
    t.is(decodeTokens(encode(text, asText)), text);
  }
});

test('every token ID up to the maximum decodes to a text, and other values are not token IDs', (t) => {
  const all = Array.from({ length: maxTokenId + 1 }, (_, i) => i);
  t.true(all.every((token) => isTokenId(token) && decodeTokens([token]).length > 0));
  // IDs above the maximum belong to special tokens or to no token at all.
  for (const other of [maxTokenId + 1, 100_257, 100_276, 1e9, -1, 0.5, NaN, Infinity, '1', null, [1]]) {
    t.false(isTokenId(other), String(other));
  }
});

test('a truncated character becomes U+FFFD, and its remainder does not affect the next text', (t) => {
  const text = 'x🚢y';
  const tokens = encode(text, asText);
  const cut = tokens.findIndex((_, i) => !text.startsWith(decodeTokens(tokens.slice(0, i))));
  t.true(cut > 0, 'the ship is more than one token');
  t.regex(decodeTokens(tokens.slice(0, cut)), /^x\ufffd+$/);
  t.regex(decodeTokens(tokens.slice(cut)), /^\ufffd+y$/);
  t.is(decodeTokens(tokens), text);
});

test('any tokens decode to well-formed text, whose JSON is no longer than measureTokens predicted', (t) => {
  fc.assert(
    fc.property(tokenIdLists, (tokens) => {
      const text = decodeTokens(tokens);
      return text.isWellFormed() && Buffer.byteLength(JSON.stringify(text)) - 2 <= measureTokens(tokens);
    }),
  );
  const spaces = encode(' '.repeat(128), asText);
  t.is(measureTokens(spaces), 128);
});

test('decoding time is proportional to the text, even for text that is slow to tokenize', (t) => {
  const [run] = encode('a'.repeat(8), asText);
  const measureMs = (length: number): number => {
    const tokens = Array.from({ length }, () => run!);
    const startedMs = readThreadMs();
    decodeTokens(tokens);
    return readThreadMs() - startedMs;
  };
  const best = (length: number): number => Math.min(...Array.from({ length: 5 }, () => measureMs(length)));
  best(8_192);
  const [some, many] = [best(8_192), best(16 * 8_192)];
  t.true(many < 16 * 4 * some + 20, `${many} ms, and ${some} ms for a sixteenth`);
});
