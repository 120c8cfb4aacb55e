import test from 'ava';
import { startApi } from '../../api/server.ts';
import { captureLog } from '../support/captured-log.ts';
import { startEndlessVendor } from '../support/endless-vendor.ts';
import { findRow, waitForNoReservation } from '../support/observe.ts';
import { useStack } from '../support/stack.ts';
import { leaveStreamUnread } from './attacks/unread-stream.ts';

test('if a caller does not read a stream, its connection and vendor call end, and the log and the history row give the reason', async (t) => {
  const vendor = await startEndlessVendor();
  t.teardown(() => vendor.close());
  const catalog = `
upstreams: { vendor: { kind: openai, baseUrl: "${vendor.url}/v1", disconnectGraceMs: 100 } }
models:
  - { id: endless, type: chat, context: 100000000, max_output_tokens: 10000000, pricing: { prompt: 1, completion: 1 }, routes: [{ upstream: vendor, model: endless }] }
`;
  const stack = await useStack(t, { catalog });
  const { log, waitForLine } = captureLog();
  const api = await startApi(stack.config, stack.env, log, { maxStallMs: 1_000 });
  t.teardown(() => api.stop());
  const account = await stack.createAccount();
  const requestId = await leaveStreamUnread({ url: api.url, apiKey: account.apiKey, model: 'endless' });
  await vendor.ended;
  const row = await findRow(stack, requestId);
  t.is(row.responseCode, 499);
  t.regex(row.details ?? '', /stopped reading/);
  const access = await waitForLine((line) => line['requestId'] === requestId);
  t.like(access, { msg: 'request', status: 499, reason: 'client did not read the response' });
  await waitForNoReservation(stack, account.id);
});
