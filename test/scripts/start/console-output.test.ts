import test from 'ava';
import { ConsoleOutput } from '../../../scripts/start/console-output.ts';
import { formatWelcome } from '../../../scripts/start/welcome.ts';
import { waitFor } from '../../support/wait-for.ts';

const time = new Date(2026, 0, 2, 3, 4, 5).toISOString();
const line = (fields: object): string =>
  JSON.stringify({ level: 'info', time, role: 'api', pid: 1, ...fields });

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
    output.printLog('api', Buffer.from(`${line({ level: 'warn', code: i, msg: 'it failed' })}\n`));
  t.is(shown().length, 20);
  await waitFor('the end of the second', () => shown().length > 20);
  t.is(shown().at(-1)?.trim(), '… and 480 more warnings, which are in the logs: it failed');
});

test('requests that failed are left out by their codes and models', async (t) => {
  const { output, shown } = collect();
  const failed = line({
    level: 'warn',
    method: 'POST',
    path: '/v1/chat/completions',
    status: 502,
    code: 'upstream_error',
    model: 'gpt',
    msg: 'request',
  });
  output.printLog('api', Buffer.from(`${failed}\n`.repeat(30)));
  await waitFor('the end of the second', () => shown().length > 20);
  t.is(
    shown().at(-1)?.trim(),
    '… and 10 more warnings, which are in the logs: request: upstream_error (gpt)',
  );
});

test('warnings that are left out are named by what they are about, also those of the start', async (t) => {
  const { output, shown } = collect();
  const warn = (fields: object): string => `${line({ level: 'warn', ...fields })}\n`;
  const names = Array.from({ length: 72 }, (_, i) => `lab-${i + 1}`);
  const skipped = names.map((name) =>
    warn({ msg: `catalog: upstream ${name} is skipped: KEY is not set; inactive models: a, b` }),
  );
  output.muteRoutine();
  // Both roles read the same catalog.
  for (const role of ['api', 'worker']) output.printLog(role, Buffer.from(skipped.join('')));
  t.is(shown().length, 20);
  await waitFor('the end of the second', () => shown().length > 20);
  output.unmuteRoutine();
  t.is(
    shown().at(-1)?.trim(),
    '… and 52 more warnings, which are in the logs: catalog: upstream is skipped (lab-21, lab-22, lab-23, lab-24, lab-25, lab-26, lab-27, lab-28 and 44 more)',
  );
  const before = shown().length;
  for (let i = 0; i < 40; i++) {
    const upstream = i % 2 === 0 ? 'east' : 'west';
    output.printLog(
      'worker',
      Buffer.from(warn({ upstream, reason: `reason ${i}`, msg: 'upstream call failed' })),
    );
  }
  output.printLog('api', Buffer.from(warn({ model: 'gpt', msg: 'model has no route' })));
  await waitFor('the end of the second', () => shown().length > before + 20);
  t.is(
    shown().at(-1)?.trim(),
    '… and 21 more warnings, which are in the logs: 20 × upstream call failed (east, west); 1 × model has no route (gpt)',
  );
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
    hasPages: true,
    hasAdminToken: false,
    tookMs: 2_140,
  };
  const text = formatWelcome({
    ...base,
    demo: { id: 'a1', apiKey: 'mg-1', banReason: null, missingAccount: null },
  });
  t.true(text.startsWith('Ready in 2.1 s.'));
  t.true(text.includes('http://127.0.0.1:8080/docs'));
  t.regex(text, /Console {4}http:\/\/127\.0\.0\.1:8080\/admin .*token create/);
  t.regex(formatWelcome({ ...base, demo: null, hasAdminToken: true }), /\/admin .*sign in with ADMIN_TOKEN/);
  t.notRegex(formatWelcome({ ...base, demo: null, hasPages: false }), /\/admin /);
  t.true(text.includes('"model":"demo-echo"') && text.includes(`-H 'Authorization: Bearer mg-1'`));
  t.notRegex(text, /gpt|embeddings|images/);
  t.regex(formatWelcome({ ...base, demo: null }), /npm run -s admin -- account create/);
});

test('if mails are stored on this machine, the welcome text shows where; otherwise it does not mention mails', (t) => {
  const base = {
    baseUrl: 'http://127.0.0.1:8080/v1',
    models: [],
    dataDir: '.data',
    hasPages: false,
    hasAdminToken: true,
    tookMs: 1,
    demo: null,
  };
  t.regex(formatWelcome({ ...base, hasOutbox: true }), /Mails {6}\.data\/outbox .*DEV mail to/);
  t.notRegex(formatWelcome({ ...base, hasOutbox: false }), /outbox|DEV mail/);
});
