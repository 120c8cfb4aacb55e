import test from 'ava';
import { describeBegin, describeEnd } from '../../../../api/operator/alerts/alert.ts';
import { conditionNames } from '../../../../api/operator/conditions/conditions.ts';

const sinceMs = Date.UTC(2026, 10, 28, 15, 16);
const since = '2026-11-28T15:16:00.000Z';

test('an alert says what is wrong, since when, what it means and what to do', (t) => {
  const { subject, body } = describeBegin({ name: 'no_workers', subjects: ['chat'] }, sinceMs);
  t.is(subject, 'no worker for the queue chat');
  t.like(body, { type: 'alert.begin', condition: 'no_workers', since });
  t.regex(
    body.text,
    /^No worker for the queue chat, since 2026-11-28T15:16:00\.000Z\. Callers .*npm run worker/,
  );
  const { subject: several } = describeBegin(
    { name: 'no_workers', subjects: ['chat', 'image', 'embedding'] },
    0,
  );
  t.is(several, 'no worker for the queues chat, image and embedding');
});

test('each condition has an alert of its beginning and one of its end, with a subject of one line', (t) => {
  for (const name of conditionNames) {
    const begin = describeBegin({ name, subjects: ['one'] }, sinceMs);
    const end = describeEnd(name, sinceMs);
    t.deepEqual(Object.keys(begin.body), ['type', 'condition', 'since', 'text']);
    t.like(end.body, { type: 'alert.end', condition: name, since });
    for (const { subject } of [begin, end]) t.regex(subject, /^[\w' ]+(?:: [\w', ]+)?$/);
    t.true(begin.body.text.includes(since) && end.body.text.includes(since));
  }
});
