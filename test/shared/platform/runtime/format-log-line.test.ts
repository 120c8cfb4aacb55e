import test from 'ava';
import { createPaint, formatLogLine } from '../../../../shared/platform/runtime/format-log-line.ts';

const plain = createPaint(false);
const time = new Date(2026, 0, 2, 3, 4, 5).toISOString();
const line = (fields: object): string =>
  JSON.stringify({ level: 'info', time, role: 'api', pid: 1, ...fields });

test('each response is shown as one short line', (t) => {
  const fields = {
    method: 'POST',
    path: '/v1/embeddings',
    status: 200,
    durationMs: 12.7,
    requestId: 'x',
    msg: 'request',
  };
  t.is(formatLogLine('api', line(fields), plain), '03:04:05 api      200 POST /v1/embeddings 13 ms');
});

test('a failed request is shown with its code, parameter and id', (t) => {
  const fields = {
    method: 'POST',
    path: '/v1/chat/completions',
    durationMs: 3,
    requestId: 'r-1',
    msg: 'request',
  };
  const show = (more: object): string | null => formatLogLine('api', line({ ...fields, ...more }), plain);
  t.is(
    show({ status: 422, code: 'validation_failed', param: 'messages.0.role' }),
    '03:04:05 api      422 POST /v1/chat/completions validation_failed messages.0.role 3 ms r-1',
  );
  t.is(
    show({ level: 'warn', status: 502, code: 'upstream_error', reason: 'every key of south is on cooldown' }),
    '03:04:05 api      502 POST /v1/chat/completions upstream_error every key of south is on cooldown 3 ms r-1',
  );
  // The response of a stream that ended with an error event.
  t.is(
    show({ status: 200, code: 'upstream_error' }),
    '03:04:05 api      200 POST /v1/chat/completions upstream_error 3 ms r-1',
  );
});

test('an invalid HTTP request is shown in the same format, with the reason', (t) => {
  const fields = { method: null, path: null, durationMs: 0, requestId: 'r-1', msg: 'request' };
  const failed = { status: 400, reason: 'Parse Error', code: 'validation_failed' };
  t.is(
    formatLogLine('api', line({ ...fields, ...failed }), plain),
    '03:04:05 api      400 - - validation_failed Parse Error 0 ms r-1',
  );
});

test('a failure shows its message and fields, but not its stack', (t) => {
  const fields = {
    level: 'error',
    shard: 3,
    err: { message: 'away', stack: 'Error: away\n at x' },
    msg: 'it failed',
  };
  t.is(formatLogLine('api', line(fields), plain), '03:04:05 api      error: it failed (away) shard=3');
});

test('debug lines are only in the log file; a line that is not our JSON is shown unchanged', (t) => {
  t.is(formatLogLine('api', line({ level: 'debug', msg: 'x' }), plain), null);
  t.is(formatLogLine('api', '', plain), null);
  t.regex(formatLogLine('api', '{"half": ', plain) ?? '', / api {6}\{"half":$/);
});

test('output has colours only on terminals', (t) => {
  t.true(formatLogLine('api', line({ msg: 'x' }), createPaint(true))?.includes('\u001B[36m'));
  t.false(formatLogLine('api', line({ msg: 'x' }), plain)?.includes('\u001B'));
});

test('output that no log file completes has all levels, request ids and stack traces', (t) => {
  const show = (fields: object): string | null =>
    formatLogLine('api', line(fields), plain, { isComplete: true });
  t.is(show({ level: 'debug', msg: 'x', requestId: 'r-1' }), '03:04:05 api      debug: x requestId=r-1');
  const access = { msg: 'request', method: 'GET', path: '/', status: 200, requestId: 'r-1' };
  t.is(show(access), '03:04:05 api      200 GET / r-1');
  const stack = 'Error: away\n    at x (y.js:1:2)\ncaused by: Error: gone\n    at z (y.js:3:4)';
  t.is(
    show({ level: 'fatal', err: { message: 'away', stack }, msg: 'uncaught exception' }),
    [
      '03:04:05 api      fatal: uncaught exception (away)',
      '    at x (y.js:1:2)',
      '    caused by: Error: gone',
      '    at z (y.js:3:4)',
    ].join('\n'),
  );
});

test('text of others cannot start a line of its own or control the terminal', (t) => {
  const hostile = 'a\n03:04:05 api      forged\u001B[2J';
  const fields = { msg: hostile, reason: hostile, err: { message: hostile, stack: `at ${hostile}` } };
  const access = {
    msg: 'request',
    method: hostile,
    path: hostile,
    status: 400,
    param: hostile,
    reason: hostile,
  };
  for (const shown of [line(fields), line({ ...access })]) {
    const text = formatLogLine('api', shown, plain)!;
    t.notRegex(text, /\p{Cc}/u);
    t.regex(text, /a\\u000a/);
  }
});
