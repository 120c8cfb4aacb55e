import test from 'ava';
import { countTokens } from '../../../shared/pricing/count-tokens.ts';
import { countDelta } from '../../../workers/runs/count-delta.ts';

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
