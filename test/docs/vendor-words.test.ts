import { readFileSync } from 'node:fs';
import test from 'ava';
import { readFinishWord, type FinishMeaning } from '../../workers/upstreams/finish-reasons.ts';
import { toUpstreamError } from '../../workers/upstreams/openai/from-error.ts';

const text = readFileSync('docs/vendors.md', 'utf8');

/** Returns what is in code style. */
const readWords = (list: string): string[] => [...list.matchAll(/`([^`]+)`/g)].map(([, word]) => word!);

for (const [label, meaning] of Object.entries({
  '`stop` (': 'stop',
  '`length`': 'length',
  '`tool_calls`': 'tool_calls',
  '`content_filter`': 'content_filter',
  'a failure:': 'failure',
} satisfies Record<string, FinishMeaning>)) {
  test(`docs/vendors.md lists words that mean ${meaning}, in upper and lower case and with either separator`, (t) => {
    const row = text.split('\n').find((line) => line.startsWith(`| ${label}`))!;
    const words = readWords(row.split('|')[2]!);
    t.true(words.length > 2);
    for (const word of words)
      for (const spelling of [word, word.toUpperCase(), word.replaceAll('_', '-')])
        t.is(readFinishWord(spelling), meaning, spelling);
  });
}

test('docs/vendors.md lists the words of a 500 that rejects one request', (t) => {
  const [, list] = /answer mistakes of a caller with 500\.[^:]*: (.*?)\. The same holds/s.exec(text)!;
  const words = readWords(list!);
  t.true(words.length > 10);
  for (const word of words) {
    const body = Buffer.from(JSON.stringify({ error: { code: 500, message: `Well, ${word}!` } }));
    t.is(toUpstreamError({ status: 500, headers: {}, body }, null).failure, 'rejected', word);
  }
});
