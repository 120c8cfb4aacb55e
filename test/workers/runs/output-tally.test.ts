import test from 'ava';
import { countTokens } from '../../../shared/catalog/count-tokens.ts';
import { OutputTally } from '../../../workers/runs/output-tally.ts';

function countDelta(delta: object): number {
  const tally = new OutputTally();
  tally.add(0, { ...delta });
  return tally.count();
}

test('tokenizes text in any field, and adds a fixed number per image and nothing for roles and audio', (t) => {
  const text = 'one two three';
  const tokens = countTokens(text);
  t.is(countDelta({ role: 'assistant', content: text }), tokens);
  t.is(countDelta({ content: null, reasoning_content: text }), tokens);
  t.is(countDelta({ tool_calls: [{ function: { name: 'f', arguments: text } }] }), countTokens(`f${text}`));
  const url = `data:image/png;base64,${'iVBORw0KGgo'.repeat(200_000)}`;
  const image = { type: 'image_url', image_url: { url } };
  t.is(countDelta({ images: [image, image] }), 2 * 1_290);
  t.true(countDelta({ audio: { id: 'a', data: url } }) < 30);
});

test('estimates the tokens of a long text quickly', (t) => {
  const sentence = 'The quick brown fox jumps over the lazy dog. ';
  const counted = countDelta({ content: sentence.repeat(20_000) });
  const expected = 200 * countTokens(sentence.repeat(100));
  t.true(Math.abs(counted - expected) < expected / 20, `${counted}, not ${expected}`);
});

test('counts the text of each choice and field as a whole, however it was split and whenever it is counted', (t) => {
  const tally = new OutputTally();
  for (const piece of 'unbelievably'.split('')) {
    tally.add(0, { content: piece });
    tally.add(1, { content: piece });
  }
  t.is(tally.count(), 2 * countTokens('unbelievably'));
  t.is(tally.count(), 2 * countTokens('unbelievably'), 'counting again adds nothing');
  tally.add(0, { content: ' cat' });
  t.is(tally.count(), 2 * countTokens('unbelievably') + 1);
});

test('the estimate is not above the count of text in any language, however it was split', (t) => {
  for (const text of [
    'The quick brown fox jumps over the lazy dog and keeps running.',
    'Съешь ещё этих мягких французских булок, да выпей чаю.',
    'いろはにほへと散りぬるを我が世誰ぞ常ならむ',
    'const answer = values.map((value) => value * 2);',
  ]) {
    for (const pieces of [[text], text.match(/\S+\s*/g)!]) {
      const tally = new OutputTally();
      for (const content of pieces) tally.add(0, { content });
      const estimate = tally.estimatedTokens;
      const count = tally.count();
      t.true(estimate <= count && estimate * 4 >= count, `${estimate} for ${count}: ${text}`);
      t.is(tally.estimatedTokens, count, 'what is counted is no longer estimated');
    }
  }
});

test('a delta without text adds nothing to the estimate', (t) => {
  const tally = new OutputTally();
  tally.add(0, { role: 'assistant', content: '' });
  t.is(tally.estimatedTokens, 0);
  tally.add(0, { images: [{}] });
  t.is(tally.estimatedTokens, tally.count());
});

test('the arguments of a tool call may be an object, as some servers send them', (t) => {
  const counted = countDelta({ tool_calls: [{ function: { name: 'f', arguments: { city: 'Rome' } } }] });
  t.is(counted, countTokens('f{"city":"Rome"}'));
});

test('a long response is counted as it arrives, so that little text is held', (t) => {
  const tally = new OutputTally();
  const sentence = 'The quick brown fox jumps over the lazy dog. ';
  for (let i = 0; i < 1_000; i++) tally.add(0, { content: sentence });
  const expected = 10 * countTokens(sentence.repeat(100));
  t.true(Math.abs(tally.estimatedTokens - expected) < expected / 20);
});
