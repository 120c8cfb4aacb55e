import { randomUUID } from 'node:crypto';
import test from 'ava';
import { maxCallsPerAccount } from '../../shared/contract/operation.ts';
import { callJobsApi, createJob, hasEnded, waitForJob, type JobBody } from '../support/jobs.ts';
import { parseNamedEvents, type NamedEvent } from '../support/named-events.ts';
import { startApiOf } from '../support/other-api.ts';
import type { TestAccount, TestStack } from '../support/stack.ts';
import { watchRedis } from '../support/watch-redis.ts';
import { waitFor } from '../support/wait-for.ts';
import { useVendorStack } from '../support/vendor-stack.ts';

/** Job events are sent as they happen, and replayed after the last event that a reader received. */

const catalogOf = (vendorUrl: string): string => `
upstreams:
  vendor: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [sk-vendor-key-0123456789] }
  narrow: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [sk-narrow-key-0123456789], maxConcurrency: 1 }
models:
  - { id: chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: gpt }] }
  - { id: hung-chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: gpt+slow-60000 }] }
  - { id: queued-chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: narrow, model: gpt+slow-150 }] }
`;

let stack: TestStack;
useVendorStack(test, catalogOf, (started) => {
  ({ stack } = started);
});

const chats = '/v1/chat/completions';
const chatOf = (model: string) => ({
  model,
  messages: [{ role: 'user', content: 'Say hello.' }],
  max_tokens: 20,
});

type Event = NamedEvent<JobBody>;

async function follow(
  account: TestAccount,
  id: string,
  headers: Record<string, string> = {},
  from: Pick<TestStack, 'url'> = stack,
): Promise<Event[]> {
  const response = await callJobsApi(from, account, `/${id}/events`, { headers });
  return parseNamedEvents<JobBody>(await response.text());
}

test('job events start with the queue position and end with the response, which closes the stream', async (t) => {
  const account = await stack.createAccount();
  const jobs = await Promise.all(
    Array.from({ length: 12 }, () => createJob(stack, account, chats, chatOf('queued-chat'))),
  );
  const last = jobs.reduce((a, b) => ((a.position ?? 0) > (b.position ?? 0) ? a : b));
  const response = await callJobsApi(stack, account, `/${last.id}/events`);
  t.is(response.headers.get('content-type'), 'text/event-stream; charset=utf-8');
  t.is(response.headers.get('x-accel-buffering'), 'no');
  const events = parseNamedEvents<JobBody>(await response.text());
  const names = events.map(({ name }) => name);
  t.deepEqual([...new Set(names)], ['queued', 'active', 'succeeded']);
  t.deepEqual(
    names,
    events.map(({ data }) => data.status),
  );
  const positions = events.filter(({ name }) => name === 'queued').map(({ data }) => data.position!);
  t.true(positions.length >= 3, `positions: ${positions.join(' ')}`);
  t.true(positions.every((position, i) => i === 0 || position < positions[i - 1]!));
  t.is(new Set(events.map(({ id }) => id)).size, events.length);
  const end = events.at(-1)!.data;
  t.deepEqual(end, await waitForJob(stack, account, last.id));
  t.is(end.response!['id'], last.id);
});

test('a reader that reconnects to any process gets the events that it missed, and none twice', async (t) => {
  const account = await stack.createAccount();
  const other = await startApiOf(stack, { ...stack.config, publicUrl: stack.url });
  t.teardown(() => other.stop());
  const { id } = await createJob(stack, account, chats, chatOf('chat'));
  await waitForJob(stack, account, id);
  const allEvents = await follow(account, id);
  t.deepEqual(
    allEvents.map(({ name }) => name),
    ['queued', 'active', 'succeeded'],
  );
  for (const [i, event] of allEvents.slice(0, -1).entries()) {
    const missedEvents = await follow(account, id, { 'last-event-id': event.id }, other);
    t.deepEqual(missedEvents, allEvents.slice(i + 1));
  }
  const query = await callJobsApi(other, account, `/${id}/events?last_event_id=${allEvents[1]!.id}`);
  t.deepEqual(parseNamedEvents(await query.text()), allEvents.slice(2));
  t.deepEqual(await follow(account, id, { 'last-event-id': 'nonsense' }), allEvents);
  const done = await callJobsApi(other, account, `/${id}/events`, {
    headers: { 'last-event-id': allEvents[2]!.id },
  });
  t.is(done.status, 204);
  t.is(await done.text(), '');
});

test('a cancelled job ends its stream with a cancelled event', async (t) => {
  const account = await stack.createAccount();
  const { id } = await createJob(stack, account, chats, chatOf('hung-chat'));
  await waitForJob(stack, account, id, ({ status }) => status === 'active');
  const following = follow(account, id);
  await callJobsApi(stack, account, `/${id}`, { method: 'DELETE' });
  const events = await following;
  const end = events.at(-1)!;
  t.is(end.name, 'cancelled');
  t.is(end.data.response, null);
  t.is(end.data.error?.code, 'job_cancelled');
  t.false(events.slice(0, -1).some(({ data }) => hasEnded(data)));
});

test('a process that stops ends its event streams, and their readers continue at another process', async (t) => {
  const account = await stack.createAccount();
  const stopping = await startApiOf(stack);
  const { id } = await createJob(stack, account, chats, chatOf('hung-chat'));
  await waitForJob(stack, account, id, ({ status }) => status === 'active');
  const response = await callJobsApi(stopping, account, `/${id}/events`);
  const text = response.text();
  await stopping.stop();
  const received = parseNamedEvents<JobBody>(await text);
  t.is(received.at(-1)?.name, 'active');
  await callJobsApi(stack, account, `/${id}`, { method: 'DELETE' });
  const missedEvents = await follow(account, id, { 'last-event-id': received.at(-1)!.id });
  t.deepEqual(
    missedEvents.map(({ name }) => name),
    ['cancelled'],
  );
});

test('HEAD for an event stream returns its headers immediately', async (t) => {
  const account = await stack.createAccount();
  const { id } = await createJob(stack, account, chats, chatOf('hung-chat'));
  const response = await callJobsApi(stack, account, `/${id}/events`, { method: 'HEAD' });
  t.is(response.status, 200);
  t.is(response.headers.get('content-type'), 'text/event-stream; charset=utf-8');
  await callJobsApi(stack, account, `/${id}`, { method: 'DELETE' });
  t.is((await callJobsApi(stack, account, `/${randomUUID()}/events`)).status, 404);
});

// Serial, because so many streams poll often enough to delay other tests.
test.serial(
  'the number of event streams per account and process is limited, and open streams do not block other calls',
  async (t) => {
    const [account, other] = [await stack.createAccount(), await stack.createAccount()];
    const { id } = await createJob(stack, account, chats, chatOf('hung-chat'));
    const { id: otherId } = await createJob(stack, other, chats, chatOf('hung-chat'));
    const client = new AbortController();
    t.teardown(() => client.abort());
    const open = async (reader: TestAccount, jobId: string): Promise<Response> =>
      await callJobsApi(stack, reader, `/${jobId}/events`, { signal: client.signal });
    const streams = await Promise.all(Array.from({ length: maxCallsPerAccount }, () => open(account, id)));
    t.true(streams.every(({ status }) => status === 200));
    const limited = await open(account, id);
    t.is(limited.status, 429);
    t.truthy(limited.headers.get('retry-after'));
    t.is(((await limited.json()) as { error: { code: string } }).error.code, 'rate_limit_exceeded');
    t.is((await open(other, otherId)).status, 200);
    t.is((await callJobsApi(stack, account, `/${id}`)).status, 200);
    for (const [owner, jobId] of [
      [account, id],
      [other, otherId],
    ] as const)
      await callJobsApi(stack, owner, `/${jobId}`, { method: 'DELETE' });
    // Each stream gets the final event and then releases its event stream slot.
    const texts = await Promise.all(streams.map((response) => response.text()));
    t.true(texts.every((text) => parseNamedEvents<JobBody>(text).at(-1)?.name === 'cancelled'));
    await waitFor('a free event stream slot', async () => (await open(account, id)).status === 200);
  },
);

test('once the reader of a job’s events has disconnected, the job is no longer polled', async (t) => {
  const account = await stack.createAccount();
  const [unreadJob, readJob] = [
    await createJob(stack, account, chats, chatOf('hung-chat')),
    await createJob(stack, account, chats, chatOf('hung-chat')),
  ];
  for (const { id } of [unreadJob, readJob])
    await waitForJob(stack, account, id, ({ status }) => status === 'active');
  const commands = await watchRedis(t, stack.config.redisUrl);
  // A look-up has the account and nothing but ids of jobs. Polls of both jobs may share one.
  const lookUp = new RegExp(`^"[0-9a-f]{40}" "1" "[^"]+" "${account.id}"(?: "[0-9a-f-]{36}")+$`);
  const countPolls = ({ id }: JobBody, from = 0): number =>
    commands.slice(from).filter(({ args }) => lookUp.test(args) && args.includes(id)).length;
  const client = new AbortController();
  const open = async (job: JobBody, signal: AbortSignal) =>
    await callJobsApi(stack, account, `/${job.id}/events`, { signal });
  const otherClient = new AbortController();
  t.teardown(() => otherClient.abort());
  const responses = await Promise.all([open(unreadJob, client.signal), open(readJob, otherClient.signal)]);
  // Without a reader, a response would be garbage, and collecting it closes its connection.
  const [unread, events] = responses.map((response) => response.text()) as [Promise<string>, Promise<string>];
  for (const body of [unread, events]) body.catch(() => undefined);
  await waitFor('both jobs to be polled', () => countPolls(unreadJob) > 2 && countPolls(readJob) > 2);
  client.abort();
  await t.throwsAsync(unread, { any: true });
  const from = commands.length;
  // The polls of the other job serve as a clock.
  await waitFor('the other job to be polled again', () => countPolls(readJob, from) >= 4);
  t.true(countPolls(unreadJob, from) <= 1, `${countPolls(unreadJob, from)} polls`);
  for (const { id } of [unreadJob, readJob])
    await callJobsApi(stack, account, `/${id}`, { method: 'DELETE' });
  t.is(parseNamedEvents<JobBody>(await events).at(-1)?.name, 'cancelled');
});
