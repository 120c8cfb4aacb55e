import test from 'ava';
import { FactsInbox } from '../../../../api/requests/replies/facts-inbox.ts';
import { encodeFacts, type RequestFacts } from '../../../../shared/work/replies/request-facts.ts';

const facts: RequestFacts = {
  upstream: 'vendor',
  attempts: 1,
  queueWaitMs: 5,
  upstreamMs: 20,
  promptTokens: 8,
  cachedTokens: 0,
  completionTokens: 4,
  reasoningTokens: 0,
  costNano: 1_000n,
  isFree: false,
  reason: null,
};

function setUp() {
  const events: string[] = [];
  const inbox = new FactsInbox();
  inbox.expect('id', ({ costNano }) => events.push(`facts ${costNano}`));
  return { events, inbox, leave: () => inbox.awaitLate('id', () => events.push('end')) };
}

test('a caller who leaves ends with the facts, once', (t) => {
  const { events, inbox, leave } = setUp();
  leave();
  t.deepEqual(events, []);
  inbox.receive('id', Buffer.from(encodeFacts(facts)));
  inbox.end('id');
  inbox.forget('id');
  t.deepEqual(events, ['facts 1000', 'end']);
});

test('a caller who leaves while the request is refused still ends', (t) => {
  const { events, inbox, leave } = setUp();
  leave();
  inbox.forget('id');
  inbox.receive('id', Buffer.from(encodeFacts(facts)));
  t.deepEqual(events, ['end']);
});

test('a request without a caller who left, or that ended before, does not wait', (t) => {
  const { events, inbox, leave } = setUp();
  inbox.forget('id');
  t.deepEqual(events, []);
  leave();
  t.deepEqual(events, ['end']);
});

test('a process that stops ends all waits', (t) => {
  const { events, inbox, leave } = setUp();
  leave();
  inbox.close();
  t.deepEqual(events, ['end']);
});
