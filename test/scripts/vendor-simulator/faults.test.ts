import test from 'ava';

import { FAULT_HELP, parseFaultWords } from '../../../scripts/vendor-simulator/faults.ts';

test('words with numbers become faults, other words mean nothing', (t) => {
  t.deepEqual(parseFaultWords('gpt-4o+slow-300+cut-5'), { delayMs: 300, cutAfterChunks: 5 });
  t.deepEqual(parseFaultWords('flaky-25+fail-502'), { failRate: 0.25, status: 502 });
  for (const text of ['', 'gpt-4o', 'sk-proj-fail-500', 'constructor', 'toString-1', 'FAIL-500']) {
    t.deepEqual(parseFaultWords(text), {}, text);
  }
});

test('the help names every word', (t) => {
  const words = FAULT_HELP.matchAll(/\b[a-z]{3,}\b/g);
  const known = [...words]
    .map(([word]) => word)
    .filter((word) => Object.keys(parseFaultWords(word)).length > 0);
  t.true(new Set(known).size >= 24);
});
