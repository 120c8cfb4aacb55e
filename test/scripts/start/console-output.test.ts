import test from 'ava';
import { ConsoleOutput } from '../../../scripts/start/console-output.ts';
import { createPaint, formatLogLine } from '../../../scripts/start/format-log-line.ts';
import { formatWelcome } from '../../../scripts/start/welcome.ts';
import { waitFor } from '../../support/wait-for.ts';

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

test('what npm start itself asks the api once a second is shown only if it fails', (t) => {
  const fields = { method: 'GET', path: '/v1/admin/demand', durationMs: 3, requestId: 'r-1', msg: 'request' };
  t.is(formatLogLine('api', line({ ...fields, status: 200 }), plain), null);
  t.regex(
    formatLogLine('api', line({ ...fields, status: 403 }), plain) ?? '',
    / 403 GET \/v1\/admin\/demand /,
  );
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
    show({ status: 503, code: 'service_unavailable' }),
    '03:04:05 api      503 POST /v1/chat/completions service_unavailable 3 ms r-1',
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

function collect(): { output: ConsoleOutput; shown: () => string[] } {
  let text = '';
  const output = new ConsoleOutput({ write: (chunk) => (text += chunk) });
  return { output, shown: () => text.split('\n').slice(0, -1) };
}

test('under load, only some responses but all warnings are shown', (t) => {
  const { output, shown } = collect();
  const responseLine = line({ method: 'GET', path: '/v1/models', status: 200, msg: 'request' });
  output.printLog('api', Buffer.from(`${responseLine}\n`.repeat(5_000)));
  t.true(shown().length < 100);
  output.printLog('api', Buffer.from(`${line({ level: 'warn', msg: 'Redis is away' })}\n`));
  t.true(shown().at(-1)?.endsWith('warn: Redis is away'));
});

test('if a part logs the same message sixteen times at the same time, it is shown once', (t) => {
  const { output, shown } = collect();
  for (let shard = 0; shard < 16; shard += 1)
    output.printLog('api', Buffer.from(`${line({ shard, msg: 'waits' })}\n`));
  t.is(shown().length, 1);
});

test('warnings with the same text are merged only if they have the same source', (t) => {
  const { output, shown } = collect();
  const failed = (upstream: string, reason: string, call: number): string =>
    `${line({ level: 'warn', time: `2026-01-02T03:04:0${call}Z`, upstream, call, reason, requestId: `r${call}`, msg: 'upstream call failed' })}\n`;
  output.printLog('worker', Buffer.from([1, 2, 3].map((call) => failed('a', 'slower', call)).join('')));
  output.printLog('worker', Buffer.from(failed('b', 'slower', 1) + failed('a', 'no money', 1)));
  t.deepEqual(
    shown().map((text) => / upstream=.*reason=.*/.exec(text)?.[0]),
    [
      ' upstream=a call=1 reason=slower',
      ' upstream=b call=1 reason=slower',
      ' upstream=a call=1 reason=no money',
    ],
  );
});

test('errors with the same text but different fields are all shown, including while the stack starts', (t) => {
  const { output, shown } = collect();
  output.muteRoutine();
  const failed = (pid: number, store: string): string =>
    `${line({ level: 'error', pid, store, msg: 'it failed' })}\n`;
  output.printLog('api', Buffer.from(failed(1, 'accounts') + failed(1, 'codes')));
  output.printLog('worker', Buffer.from(failed(2, 'codes')));
  t.deepEqual(
    shown().map((text) => text.slice(9)),
    ['api      error: it failed store=accounts', 'api      error: it failed store=codes'],
  );
});

test('if there are very many different warnings, some are shown, and the others are only counted', async (t) => {
  const { output, shown } = collect();
  for (let i = 0; i < 500; i++)
    output.printLog('api', Buffer.from(`${line({ level: 'warn', code: i, msg: 'request failed' })}\n`));
  t.is(shown().length, 20);
  await waitFor('the end of the second', () => shown().length > 20);
  t.is(shown().at(-1)?.trim(), '… and 480 more warnings, which are in the logs');
});

test('if a line arrives in pieces, it is shown once it is complete', (t) => {
  const { output, shown } = collect();
  const text = Buffer.from(`${line({ msg: 'whole' })}\n`);
  output.printLog('api', text.subarray(0, 20));
  t.is(shown().length, 0);
  output.printLog('api', text.subarray(20));
  t.is(shown()[0], '03:04:05 api      whole');
});

test('the suggested commands use only active models', (t) => {
  const models = [
    { id: 'gpt', type: 'chat' as const, active: false },
    { id: 'demo-echo', type: 'chat' as const, active: true },
  ];
  const base = {
    baseUrl: 'http://127.0.0.1:8080/v1',
    models,
    dataDir: '.data',
    hasOutbox: true,
    tookMs: 2_140,
  };
  const text = formatWelcome({
    ...base,
    demo: { id: 'a1', apiKey: 'mg-1', banReason: null, missingAccount: null },
  });
  t.true(text.startsWith('Ready in 2.1 s.'));
  t.true(text.includes('http://127.0.0.1:8080/docs'));
  t.true(text.includes('"model":"demo-echo"') && text.includes(`-H 'Authorization: Bearer mg-1'`));
  t.notRegex(text, /gpt|embeddings|images/);
  t.regex(formatWelcome({ ...base, demo: null }), /npm run -s admin -- account create/);
});

test('if mails are stored on this machine, the welcome text shows where; otherwise it does not mention mails', (t) => {
  const base = { baseUrl: 'http://127.0.0.1:8080/v1', models: [], dataDir: '.data', tookMs: 1, demo: null };
  t.regex(formatWelcome({ ...base, hasOutbox: true }), /Mails {6}\.data\/outbox .*DEV mail to/);
  t.notRegex(formatWelcome({ ...base, hasOutbox: false }), /outbox|DEV mail/);
});
