import test from 'ava';
import { describeBegin, describeEnd } from '../../../../api/operator/alerts/alert.ts';
import { conditionNames } from '../../../../shared/contract/condition-names.ts';

const sinceMs = Date.UTC(2026, 10, 28, 15, 16);
const since = '2026-11-28T15:16:00.000Z';
const whole = { key: '', fields: {} };

test('an alert says what is wrong, since when, what it means and what to do', (t) => {
  const { subject, body } = describeBegin({ name: 'no_workers', subjects: ['chat'], ...whole }, sinceMs);
  t.is(subject, 'no worker for the queue chat');
  t.like(body, { type: 'alert.begin', condition: 'no_workers', since });
  t.regex(
    body.text,
    /^No worker for the queue chat, since 2026-11-28T15:16:00\.000Z\. Callers .*npm run worker/,
  );
  const { subject: several } = describeBegin(
    { name: 'no_workers', subjects: ['chat', 'image', 'embedding'], ...whole },
    0,
  );
  t.is(several, 'no worker for the queues chat, image and embedding');
});

test('each condition has an alert of its beginning and one of its end, with a subject of one line', (t) => {
  for (const name of conditionNames) {
    const begin = describeBegin({ name, subjects: ['one'], ...whole, key: 'one two' }, sinceMs);
    const end = describeEnd({ name, key: 'one two' }, sinceMs);
    t.deepEqual(Object.keys(begin.body), ['type', 'condition', 'since', 'text']);
    t.like(end.body, { type: 'alert.end', condition: name, since });
    for (const { subject } of [begin, end]) t.regex(subject, /^[\w' ]+(?:: [\w', ]+)?$/);
    t.true(begin.body.text.includes(since) && end.body.text.includes(since));
  }
});

test('the alert of a refused key says how bad it is: how many are left, and which models nothing else serves', (t) => {
  const refused = { name: 'upstream_key_refused', subjects: ['south'], key: 'south ae4e2f4499cf' } as const;
  const reason = 'refused with 401 (invalid_api_key)';
  const one = describeBegin({ ...refused, fields: { reason, usableKeys: 1, keys: 2 } }, sinceMs).body.text;
  t.regex(
    one,
    /^A key is refused by south, since .* the key ae4e2f4499cf, refused with 401 \(invalid_api_key\)\./,
  );
  t.regex(one, /south has 1 of 2 keys left\. Other keys or routes take its calls\./);
  t.regex(one, /"admin upstream reset south"/);
  const last = { reason, usableKeys: 0, keys: 1, deadModels: 'assistant, vectors' };
  t.regex(
    describeBegin({ ...refused, fields: last }, sinceMs).body.text,
    /south has 0 of 1 keys left\. Nothing else serves assistant, vectors: callers get a 502\./,
  );
  t.regex(describeEnd(refused, sinceMs).body.text, /^The key ae4e2f4499cf is no longer refused by south\. /);
});
