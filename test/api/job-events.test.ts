import { randomUUID } from 'node:crypto';
import test from 'ava';
import { startApi } from '../../api/server.ts';
import { maxCallsPerAccount } from '../../shared/contract/operation.ts';
import { askJobs, createJob, hasEnded, waitForJob, type JobBody } from '../support/jobs.ts';
import { parseNamedEvents, type NamedEvent } from '../support/named-events.ts';
import type { TestAccount, TestStack } from '../support/stack.ts';
import { watchRedis } from '../support/watch-redis.ts';
import { waitFor } from '../support/wait-for.ts';
import { useVendorStack } from '../support/vendor-stack.ts';

/** How a job goes on, told as it happens, and told again from where a reader was. */

const catalogOf = (vendorUrl: string): string => `
upstreams:
  vendor: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [sk-vendor-key-0123456789] }
  narrow: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [sk-narrow-key-0123456789], maxConcurrency: 1 }
models:
  - { id: chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: gpt }] }
  - { id: hung-chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: gpt+slow-60000 }] }
  - { id: line-chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: narrow, model: gpt+slow-150 }] }
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
  const answer = await askJobs(from, account, `/${id}/events`, { headers });
  return parseNamedEvents<JobBody>(await answer.text());
}

test('a job is followed from its place in the line to its response, and the stream ends with it', async (t) => {
  const account = await stack.createAccount();
  const jobs = await Promise.all(
    Array.from({ length: 12 }, () => createJob(stack, account, chats, chatOf('line-chat'))),
  );
  const last = jobs.reduce((a, b) => ((a.position ?? 0) > (b.position ?? 0) ? a : b));
  const answer = await askJobs(stack, account, `/${last.id}/events`);
  t.is(answer.headers.get('content-type'), 'text/event-stream; charset=utf-8');
  t.is(answer.headers.get('x-accel-buffering'), 'no');
  const events = parseNamedEvents<JobBody>(await answer.text());
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

test('a reader that connects again, at any process, gets what it missed and nothing twice', async (t) => {
  const account = await stack.createAccount();
  const other = await startApi(stack.config, stack.env, stack.log);
  t.teardown(() => other.stop());
  const { id } = await createJob(stack, account, chats, chatOf('chat'));
  await waitForJob(stack, account, id);
  const whole = await follow(account, id);
  t.deepEqual(
    whole.map(({ name }) => name),
    ['queued', 'active', 'succeeded'],
  );
  for (const [i, event] of whole.slice(0, -1).entries()) {
    const rest = await follow(account, id, { 'last-event-id': event.id }, other);
    t.deepEqual(rest, whole.slice(i + 1));
  }
  const query = await askJobs(other, account, `/${id}/events?last_event_id=${whole[1]!.id}`);
  t.deepEqual(parseNamedEvents(await query.text()), whole.slice(2));
  t.deepEqual(await follow(account, id, { 'last-event-id': 'nonsense' }), whole);
  const done = await askJobs(other, account, `/${id}/events`, { headers: { 'last-event-id': whole[2]!.id } });
  t.is(done.status, 204);
  t.is(await done.text(), '');
});

test('a job that is cancelled ends its stream with that', async (t) => {
  const account = await stack.createAccount();
  const { id } = await createJob(stack, account, chats, chatOf('hung-chat'));
  await waitForJob(stack, account, id, ({ status }) => status === 'active');
  const following = follow(account, id);
  await askJobs(stack, account, `/${id}`, { method: 'DELETE' });
  const events = await following;
  const end = events.at(-1)!;
  t.is(end.name, 'cancelled');
  t.is(end.data.response, null);
  t.is(end.data.error?.code, 'job_cancelled');
  t.false(events.slice(0, -1).some(({ data }) => hasEnded(data)));
});

test('a process that stops ends its streams, and their readers go on at another', async (t) => {
  const account = await stack.createAccount();
  const stopping = await startApi(stack.config, stack.env, stack.log);
  const { id } = await createJob(stack, account, chats, chatOf('hung-chat'));
  await waitForJob(stack, account, id, ({ status }) => status === 'active');
  const answer = await askJobs(stopping, account, `/${id}/events`);
  const text = answer.text();
  await stopping.stop();
  const seen = parseNamedEvents<JobBody>(await text);
  t.is(seen.at(-1)?.name, 'active');
  await askJobs(stack, account, `/${id}`, { method: 'DELETE' });
  const rest = await follow(account, id, { 'last-event-id': seen.at(-1)!.id });
  t.deepEqual(
    rest.map(({ name }) => name),
    ['cancelled'],
  );
});

test('HEAD of a stream of events says what it is, and does not wait', async (t) => {
  const account = await stack.createAccount();
  const { id } = await createJob(stack, account, chats, chatOf('hung-chat'));
  const answer = await askJobs(stack, account, `/${id}/events`, { method: 'HEAD' });
  t.is(answer.status, 200);
  t.is(answer.headers.get('content-type'), 'text/event-stream; charset=utf-8');
  await askJobs(stack, account, `/${id}`, { method: 'DELETE' });
  t.is((await askJobs(stack, account, `/${randomUUID()}/events`)).status, 404);
});

// Serial: so many look at their jobs often enough to delay what other tests wait for.
test.serial(
  'an account follows jobs by so many streams at each process, and those keep no other call out',
  async (t) => {
    const [account, other] = [await stack.createAccount(), await stack.createAccount()];
    const { id } = await createJob(stack, account, chats, chatOf('hung-chat'));
    const { id: ofOther } = await createJob(stack, other, chats, chatOf('hung-chat'));
    const leaving = new AbortController();
    t.teardown(() => leaving.abort());
    const open = async (of: TestAccount, jobId: string): Promise<Response> =>
      await askJobs(stack, of, `/${jobId}/events`, { signal: leaving.signal });
    const opened = await Promise.all(Array.from({ length: maxCallsPerAccount }, () => open(account, id)));
    t.true(opened.every(({ status }) => status === 200));
    const refused = await open(account, id);
    t.is(refused.status, 429);
    t.truthy(refused.headers.get('retry-after'));
    t.is(((await refused.json()) as { error: { code: string } }).error.code, 'rate_limit_exceeded');
    t.is((await open(other, ofOther)).status, 200);
    t.is((await askJobs(stack, account, `/${id}`)).status, 200);
    for (const [owner, jobId] of [
      [account, id],
      [other, ofOther],
    ] as const)
      await askJobs(stack, owner, `/${jobId}`, { method: 'DELETE' });
    // Each of them is told of the end, and makes room.
    const texts = await Promise.all(opened.map((answer) => answer.text()));
    t.true(texts.every((text) => parseNamedEvents<JobBody>(text).at(-1)?.name === 'cancelled'));
    await waitFor('room', async () => (await open(account, id)).status === 200);
  },
);

test('a job whose reader has left is not looked at any more', async (t) => {
  const account = await stack.createAccount();
  const [left, kept] = [
    await createJob(stack, account, chats, chatOf('hung-chat')),
    await createJob(stack, account, chats, chatOf('hung-chat')),
  ];
  // What a worker says of one of them alone, it says before that.
  for (const { id } of [left, kept])
    await waitForJob(stack, account, id, ({ status }) => status === 'active');
  const commands = await watchRedis(t, stack.config.redisUrl);
  const looksAt = ({ id }: JobBody, from = 0): number =>
    // The worker speaks of both, in one command.
    commands
      .slice(from)
      .filter(({ args }) => args.includes(id) && !(args.includes(left.id) && args.includes(kept.id))).length;
  const leaving = new AbortController();
  const open = async (job: JobBody, signal: AbortSignal) =>
    await askJobs(stack, account, `/${job.id}/events`, { signal });
  const ending = new AbortController();
  t.teardown(() => ending.abort());
  await Promise.all([open(left, leaving.signal), open(kept, ending.signal)]);
  await waitFor('both to be looked at', () => looksAt(left) > 2 && looksAt(kept) > 2);
  leaving.abort();
  const from = commands.length;
  // The other reader is the clock.
  await waitFor('the other to be looked at again', () => looksAt(kept, from) >= 4);
  t.true(looksAt(left, from) <= 1, `${looksAt(left, from)} looks`);
  for (const { id } of [left, kept]) await askJobs(stack, account, `/${id}`, { method: 'DELETE' });
});
