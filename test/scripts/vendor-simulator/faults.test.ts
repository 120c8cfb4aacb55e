import test from 'ava';

import {
  FAULT_HELP,
  FAULT_NAMES,
  findUnknownFaultWords,
  parseFaultWords,
} from '../../../scripts/vendor-simulator/faults.ts';

test('fault words with numbers become faults, and other text in a name is ignored', (t) => {
  t.deepEqual(parseFaultWords('gpt-4o+slow-300+cut-5'), { delayMs: 300, cutAfterChunks: 5 });
  t.deepEqual(parseFaultWords('flaky-25+fail-502'), { failRate: 0.25, status: 502 });
  for (const text of ['', 'gpt-4o', 'sk-proj-fail-500', 'constructor', 'toString-1', 'FAIL-500']) {
    t.deepEqual(parseFaultWords(text), {}, text);
  }
});

test('the help lists every fault word', (t) => {
  for (const name of FAULT_NAMES) {
    t.regex(FAULT_HELP, new RegExp(`\\b${name}\\b`));
  }
});

test('an unknown fault word and a fault word without its number are reported', (t) => {
  t.deepEqual(findUnknownFaultWords('fail-500+slow-3+hang+exhausted402'), []);
  t.deepEqual(findUnknownFaultWords(''), []);
  t.deepEqual(findUnknownFaultWords('fial-500+hang+cut'), ['fial-500', 'cut']);
});

test('a status that is not an error status is sent as 500', (t) => {
  t.deepEqual(parseFaultWords('fail-200'), { status: 500 });
  t.deepEqual(parseFaultWords('fail'), { status: 500 });
});
