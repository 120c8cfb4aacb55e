import test from 'ava';
import { readAdmin, runAdmin } from '../../support/admin.ts';
import { startStack, type TestStack } from '../../support/stack.ts';

/** Tokens of the admin API and the log of operators' changes, by command. */

let stack: TestStack;

test.before(async () => {
  stack = await startStack({ workers: [] });
});
test.after.always(() => stack?.close());

const run = (...args: string[]) => runAdmin(stack.env, ...args);
type Row = Readonly<Record<string, unknown>>;

test('a token is printed once, listed without its secret, and revoked once and for all', async (t) => {
  const created = await readAdmin<Row>(stack.env, 'token', 'create', 'support', '--scope', 'read');
  t.like(created, { id: 'support', name: 'support', scope: 'read', revoked_at: null });
  t.regex(String(created['token']), /^mga-[\w-]{43}$/);
  const listed = await readAdmin<Row[]>(stack.env, 'token', 'list');
  t.like(listed[0], { name: 'support', scope: 'read' });
  const stored = await stack.mongo.db.collection('admin_tokens').find({}).toArray();
  for (const text of [JSON.stringify(listed), JSON.stringify(stored)])
    t.false(text.includes(String(created['token'])));
  t.truthy((await readAdmin<Row>(stack.env, 'token', 'revoke', 'support'))['revoked_at']);
  t.is((await run('token', 'revoke', 'support')).exitCode, 0, 'again');
  t.is((await run('token', 'revoke', 'none')).exitCode, 1);
  t.is((await run('token', 'create', 'support', '--scope', 'read')).exitCode, 1);
});

test('a wrong scope or name is explained', async (t) => {
  for (const args of [['x'], ['x', '--scope', 'root'], ['--scope', 'read']])
    t.is((await run('token', 'create', ...args)).exitCode, 2, args.join(' '));
  for (const name of ['ADMIN_TOKEN', 'command', 'a b', 'x'.repeat(64), '.hidden'])
    t.is((await run('token', 'create', name, '--scope', 'read')).exitCode, 1, name);
});

test('the log lists what commands changed, newest first, by token, resource and time', async (t) => {
  const { id } = await readAdmin<Row>(stack.env, 'account', 'create', '--balance', '5');
  await run('account', 'limit', String(id), '--rpm', '7');
  await run('account', 'ban', String(id), '--reason', 'a test');
  await run('code', 'revoke', 'ABCD-EFGH');
  const list = (...args: string[]) => readAdmin<Row[]>(stack.env, 'audit', 'list', ...args);
  const ofAccount = await list('--resource', `account:${String(id)}`);
  t.deepEqual(
    ofAccount.map((row) => [row['action'], row['outcome'], row['token']]),
    [
      ['account.ban', 'done', 'command'],
      ['account.update', 'done', 'command'],
      ['account.create', 'done', 'command'],
    ],
  );
  t.like(ofAccount[1], { before: { requests_per_minute: 60 }, after: { requests_per_minute: 7 } });
  t.true((await list('--resource', 'account')).length >= 3);
  t.true((await list('--token', 'command', '--since', '2020-01-01')).length >= 3);
  t.deepEqual(await list('--token', 'nobody'), []);
  t.deepEqual(await list('--since', '2999-01-01'), []);
  t.is((await run('audit', 'list', '--since', 'yesterday')).exitCode, 2);
  t.is((await run('audit', 'list', '--resource', 'nonsense')).exitCode, 1);
});

test('a drain takes an upstream and a model, and wrong names are explained', async (t) => {
  const rows = await readAdmin<Row[]>(stack.env, 'upstream', 'drain', 'builtin', 'demo-echo');
  t.like(rows, [{ model: 'demo-echo', upstream: 'builtin', drained: true }]);
  t.regex(String(rows[0]!['not_called']), /undrain/);
  const models = await readAdmin<Row[]>(stack.env, 'model', 'list');
  t.like(
    models.find((row) => row['id'] === 'demo-echo'),
    { active: false },
  );
  t.like(await readAdmin<Row[]>(stack.env, 'upstream', 'undrain', 'builtin', 'demo-echo'), [
    { drained: false },
  ]);
  t.like(await readAdmin<Row[]>(stack.env, 'upstream', 'reset', 'builtin', 'demo-echo'), [
    { breaker: 'closed' },
  ]);
  t.is((await run('upstream', 'drain', 'none')).exitCode, 1);
  t.is((await run('upstream', 'drain', 'builtin', 'none')).exitCode, 1);
  t.is((await run('upstream', 'drain')).exitCode, 2);
  t.is((await run('upstream', 'drain', 'builtin', 'demo-echo', 'more')).exitCode, 2);
});
