import test from 'ava';
import { warnOfHiddenCallers } from '../../../../api/http/callers/warn-of-hidden-callers.ts';
import { captureLog } from '../../../support/captured-log.ts';

test('if https is used but TRUST_PROXY is off, the api warns once that it cannot distinguish callers', (t) => {
  const { log, lines } = captureLog();
  warnOfHiddenCallers({ publicUrl: 'https://gateway.example', trustProxy: false }, log);
  t.is(lines.length, 1);
  t.like(lines[0], { level: 40, publicUrl: 'https://gateway.example' });
  t.regex(String(lines[0]!['msg']), /set TRUST_PROXY=on$/);
});

test('nothing is logged if callers can be distinguished', (t) => {
  const { log, lines } = captureLog();
  warnOfHiddenCallers({ publicUrl: 'https://gateway.example', trustProxy: true }, log);
  warnOfHiddenCallers({ publicUrl: 'http://127.0.0.1:8080', trustProxy: false }, log);
  warnOfHiddenCallers({ publicUrl: null, trustProxy: false }, log);
  t.deepEqual(lines, []);
});
