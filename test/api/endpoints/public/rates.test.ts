import test from 'ava';
import {
  chooseStatusMessage,
  toAverageSeconds,
  toSuccessRate,
  toTokensPerSecond,
} from '../../../../api/endpoints/public/rates.ts';
import { noModelSums } from '../../../../shared/ledger/request-sums.ts';

for (const [succeeded, failed, rate, message] of [
  [0, 0, 0, 'Not enough data'],
  [4, 0, 100, 'Not enough data'],
  [0, 4, 0, 'Not enough data'],
  [5, 0, 100, 'Good'],
  [9_001, 999, 90.01, 'Good'],
  [9, 1, 90, 'Normal'],
  [8_001, 1_999, 80.01, 'Normal'],
  [8, 2, 80, 'Acceptable'],
  [7_001, 2_999, 70.01, 'Acceptable'],
  [7, 3, 70, 'Bad'],
  [6_001, 3_999, 60.01, 'Bad'],
  [6, 4, 60, 'Dead'],
  [0, 5, 0, 'Dead'],
  [2, 4, 33.33, 'Dead'],
  [900_001, 99_999, 90, 'Normal'],
] as const) {
  test(`${succeeded} successes and ${failed} failures are ${rate} %: ${message}`, (t) => {
    t.is(toSuccessRate({ succeeded, failed }), rate);
    t.is(chooseStatusMessage({ succeeded, failed }), message);
  });
}

test("tokens per second are the generated or embedded tokens, divided by the vendor's time", (t) => {
  const sums = { ...noModelSums, succeeded: 2, vendorMs: 3_000, promptTokens: 700, completionTokens: 100 };
  t.is(toTokensPerSecond('chat', sums), 33.33);
  t.is(toTokensPerSecond('vision', sums), 33.33);
  t.is(toTokensPerSecond('embedding', sums), 233.33);
  t.is(toTokensPerSecond('chat', noModelSums), null);
});

test('the average time has millisecond precision', (t) => {
  t.is(toAverageSeconds({ ...noModelSums, succeeded: 3, durationMs: 1_000 }), 0.333);
  t.is(toAverageSeconds(noModelSums), null);
});
