import test from 'ava';
import { RejectionLog } from '../../../api/admission/rejection-log.ts';
import type { Rejection } from '../../../shared/ledger/rejection-store.ts';
import { ProcessMetrics } from '../../../shared/platform/metrics/process-metrics.ts';
import { waitFor } from '../../support/wait-for.ts';

const rejection: Rejection = {
  requestId: 'request',
  accountId: 'account',
  model: 'chat',
  at: new Date(),
  durationMs: 3,
  status: 402,
  code: 'insufficient_balance',
  message: 'Your balance is too low.',
  address: '192.0.2.1',
};

function openLog(options: { readonly insert?: (rejections: readonly Rejection[]) => Promise<void> } = {}) {
  const written: Rejection[] = [];
  const warnings: string[] = [];
  const metrics = new ProcessMetrics({ role: 'api' });
  let nowMs = 0;
  const log = new RejectionLog({
    store: { insert: options.insert ?? (async (rejections) => void written.push(...rejections)) },
    metrics,
    log: { warn: (_fields: object, line?: string) => void warnings.push(line ?? '') } as never,
    flushMs: 1,
    nowMs: () => nowMs,
  });
  return {
    log,
    written,
    warnings,
    note: (count: number, more: Partial<Rejection> = {}) => {
      for (let i = 0; i < count; i += 1)
        log.note({ ...rejection, requestId: `${more.accountId} ${more.code} ${i}`, ...more });
    },
    pass: (ms: number) => (nowMs += ms),
    countUnlogged: async (reason: string): Promise<number> => {
      const line = new RegExp(`rejections_unlogged_total\\{[^}]*reason="${reason}"[^}]*\\} (\\d+)`);
      return Number(line.exec(await metrics.write())?.[1] ?? 0);
    },
  };
}

test('of rejections that are alike, twenty are logged at once and then one in ten seconds, and the rest is counted', async (t) => {
  const { log, written, note, pass, countUnlogged } = openLog();
  note(50);
  await log.close();
  t.is(written.length, 20);
  t.is(await countUnlogged('alike'), 30);
  pass(10_000);
  note(3);
  await log.close();
  t.is(written.length, 21);
  // Another code, and another account, are not held up.
  note(3, { code: 'rate_limit_exceeded' });
  note(3, { accountId: 'other' });
  await log.close();
  t.is(written.length, 27);
});

test('a flood from many accounts is bounded for the whole process, and leaves room for the first of others', async (t) => {
  const { log, written, note, pass, countUnlogged } = openLog();
  const codes = ['validation_failed', 'not_found', 'rate_limit_exceeded', 'model_not_found'] as const;
  const flood = (): void => {
    for (let i = 0; i < 40; i += 1) for (const code of codes) note(20, { accountId: `flood ${i}`, code });
  };
  flood();
  await log.close();
  const atOnce = written.length;
  t.true(atOnce >= 200 && atOnce <= 400, `${atOnce}`);
  for (let second = 0; second < 60; second += 1) {
    pass(1_000);
    flood();
    note(1, { accountId: `victim ${second}` });
    await log.close();
  }
  const ofVictims = written.filter(({ accountId }) => accountId.startsWith('victim'));
  t.is(ofVictims.length, 60);
  t.true(written.length - atOnce <= 60 * 7 + 1, `${written.length - atOnce} in a minute`);
  t.true((await countUnlogged('process')) > 0);
});

test('what could not be written is written later, the newest if there is too much, and operators are warned', async (t) => {
  const written: Rejection[] = [];
  let isDown = true;
  let attempts = 0;
  const { log, warnings, note, pass, countUnlogged } = openLog({
    insert: async (rejections) => {
      attempts += 1;
      if (isDown) throw new Error('MongoDB is down');
      written.push(...rejections);
    },
  });
  note(2);
  await waitFor('two attempts', () => attempts >= 2);
  for (let i = 0; i < 1_300; i += 1) {
    note(1, { accountId: `account ${i}` });
    pass(500);
  }
  isDown = false;
  await log.close();
  t.deepEqual(warnings, ['rejected requests are not logged']);
  t.is(written.length + (await countUnlogged('unwritten')), 1_302);
  t.true(written.length >= 1_000, `${written.length}`);
});

test('keys and codes in a message are hidden, and long messages are cut', async (t) => {
  const { log, written, note } = openLog();
  note(1, { message: `no such model mg-${'A'.repeat(43)} ${'x'.repeat(1_000)}` });
  await log.close();
  t.regex(written[0]!.message, /^no such model mg-… x{50}/);
  t.true(written[0]!.message.length <= 501);
});
