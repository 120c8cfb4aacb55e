import test from 'ava';
import { operations } from '../../../api/contract/operations.ts';
import { changesAsOperator, type Operation } from '../../../shared/contract/operation.ts';
import { maxReasonInQuery } from '../../../shared/contract/admin-terms.ts';
import { createApiKey, createRefillCode } from '../../../shared/accounts/credentials.ts';
import type { describeEvent } from '../../../shared/admin/audit-log.ts';
import { readAdmin, runAdmin } from '../../support/admin.ts';
import { callAdmin, codeOf, testAdminToken, type ListedPage } from '../../support/admin-api.ts';
import { startStack, type TestStack } from '../../support/stack.ts';

/** Why operators change something: given with any change, by API and command, and kept in the audit log. */

const catalog = `
upstreams:
  first: { kind: openai, baseUrl: 'http://127.0.0.1:9/v1', apiKeys: [sk-vendor-key-0123456789] }
models:
  - { id: single, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: first, model: a }] }
`;

type DescribedEvent = ReturnType<typeof describeEvent>;

let stack: TestStack;
test.before(async () => {
  stack = await startStack({ catalog, env: { ADMIN_TOKEN: testAdminToken } });
});
test.after.always(() => stack?.close());

const call = <T = Record<string, unknown>>(method: string, path: string, body?: unknown, headers = {}) =>
  callAdmin<T>(stack.url, testAdminToken, method, path, body, headers);

const given = (reason: string): string => `?reason=${encodeURIComponent(reason)}`;

async function listEvents(resource: string): Promise<readonly DescribedEvent[]> {
  const path = `/audit?limit=100&resource=${encodeURIComponent(resource)}`;
  return (await call<ListedPage<DescribedEvent>>('GET', path)).body.data;
}

const latestOf = async (resource: string): Promise<DescribedEvent> => (await listEvents(resource))[0]!;

/** They change nothing, or only the session of their caller. */
const unrecorded: readonly string[] = ['startAdminSession', 'endAdminSession', 'findAnything'];

const hasReason = (schema: { readonly properties?: object } | undefined): boolean =>
  Object.hasOwn(schema?.properties ?? {}, 'reason');

test('each recorded change takes a reason: in its query, or in its body if that has one', (t) => {
  const changes = Object.values<Operation>(operations).filter(
    (operation) => changesAsOperator(operation) && !unrecorded.includes(operation.operationId),
  );
  t.true(changes.length > 20);
  for (const { operationId, query, body } of changes)
    t.true(hasReason(query) !== hasReason(body), operationId);
});

test('a reason is trimmed, is in the audit log from the beginning, and is nowhere if none was given', async (t) => {
  const reason = 'Поставщик отвечает ошибками с 14:05, см. заявку 812';
  t.is((await call('POST', `/upstreams/first/drain${given(`  ${reason} `)}`, {})).status, 200);
  const drained = await latestOf('upstream:first');
  t.like(drained, { action: 'upstream.drain', reason, outcome: 'done' });
  t.is((await call<DescribedEvent>('GET', `/audit/${drained.id}`)).body.reason, reason);
  t.is((await call('POST', '/upstreams/first/undrain', {})).status, 200);
  t.like(await latestOf('upstream:first'), { action: 'upstream.undrain', reason: null });
});

test('changes with a body, without one, and with filters of their own take it', async (t) => {
  const { id } = await stack.createAccount();
  const of = `account:${id}`;
  t.is((await call('PATCH', `/accounts/${id}${given('more traffic')}`, { weight: 2 })).status, 200);
  t.like(await latestOf(of), { action: 'account.update', reason: 'more traffic' });
  const note = { amount: 5, note: 'for the owner' };
  const key = { 'idempotency-key': 'credit' };
  t.is((await call('POST', `/accounts/${id}/credits${given('for us')}`, note, key)).status, 200);
  t.like(await latestOf(of), {
    action: 'account.credit',
    reason: 'for us',
    after: { note: 'for the owner' },
  });
  t.is((await call('POST', `/accounts/${id}/rotate-key${given('it leaked')}`)).status, 200);
  t.like(await latestOf(of), { action: 'account.rotate-key', reason: 'it leaked' });
  t.is((await call('POST', `/queues/chat/retry${given('vendor is back')}`)).status, 200);
  t.like(await latestOf('queue:chat'), { action: 'queue.retry', reason: 'vendor is back' });
  t.is((await call('PATCH', `/models/single${given('too slow')}`, { active: false })).status, 200);
  t.like(await latestOf('model:single'), { action: 'model.disable', reason: 'too slow' });
  t.is((await call('PATCH', '/models/single', { active: true })).status, 200);
});

test('the reason of a ban stays in its body, and is the reason of the change; keys and codes in it are masked', async (t) => {
  const { id } = await stack.createAccount();
  const reason = ` leaked ${createApiKey()} and ${createRefillCode().toLowerCase().replaceAll('-', ' ')} `;
  const { body } = await call('POST', `/accounts/${id}/ban`, { reason });
  t.is(body['ban_reason'], 'leaked mg-… and …');
  t.like(await latestOf(`account:${id}`), { action: 'account.ban', reason: 'leaked mg-… and …' });
  t.is((await call('POST', `/accounts/${id}/ban${given('a second one')}`, { reason })).status, 422);
  t.is((await call('POST', `/accounts/${id}/unban${given('paid')}`)).status, 200);
  t.like(await latestOf(`account:${id}`), { action: 'account.unban', reason: 'paid' });
});

test('a reason that is too long, blank, of several lines or with a secret is refused, as are unknown parameters', async (t) => {
  const { id } = await stack.createAccount();
  const path = `/accounts/${id}/unban`;
  const wrong = [
    given('x'.repeat(maxReasonInQuery + 1)),
    given(' '),
    given(''),
    given('two\nlines'),
    given(`the key is ${createApiKey()}`),
    given(`the code is ${createRefillCode()}`),
    `${given('one')}&reason=two`,
    '?reasn=typo',
    '?dry_run=true',
  ];
  for (const query of wrong) {
    const refused = await call('POST', `${path}${query}`);
    t.is(refused.status, 422, query);
    t.is(codeOf(refused), 'validation_failed');
    t.notRegex(JSON.stringify(refused.body), /mg-[A-Za-z0-9_-]{12}/);
  }
  t.deepEqual(await listEvents(`account:${id}`), []);
  // Of letters that take twelve characters each in an address.
  t.is((await call('POST', `${path}${given('🙂'.repeat(maxReasonInQuery))}`)).status, 200);
  t.is((await latestOf(`account:${id}`)).reason, '🙂'.repeat(maxReasonInQuery));
});

test('a dry run takes the reason of the change and records nothing; a repeated creation may have another one', async (t) => {
  const { id } = await stack.createAccount();
  t.is((await call('POST', `/accounts/${id}/rotate-key${given('just asking')}&dry_run=true`)).status, 200);
  t.deepEqual(await listEvents(`account:${id}`), []);
  const key = { 'idempotency-key': 'one account' };
  const first = await call('POST', `/accounts${given('a new customer')}`, { name: 'Ann' }, key);
  const second = await call('POST', `/accounts${given('once more')}`, { name: 'Ann' }, key);
  t.deepEqual([first.status, second.status], [201, 201]);
  t.is(second.body['id'], first.body['id']);
});

test('a command takes --reason for each change, and for nothing else', async (t) => {
  const { env } = stack;
  const { id } = await stack.createAccount();
  const run = (...args: string[]) => runAdmin(env, ...args);
  t.is((await run('account', 'limit', id, '--rpm', '5', '--reason', 'a flood')).exitCode, 0);
  t.like(await latestOf(`account:${id}`), { action: 'account.update', token: 'command', reason: 'a flood' });
  t.is((await run('account', 'ban', id, '--reason', `stolen ${createApiKey()}`)).exitCode, 0);
  t.like(await latestOf(`account:${id}`), { action: 'account.ban', reason: 'stolen mg-…' });
  t.is((await run('account', 'unban', id)).exitCode, 0);
  t.like(await latestOf(`account:${id}`), { action: 'account.unban', reason: null });
  const [event] = await readAdmin<DescribedEvent[]>(env, 'audit', 'list', '--resource', `account:${id}`);
  t.is(event!.reason, null);

  const onlyReason = await run('account', 'update', id, '--reason', 'nothing to change');
  t.is(onlyReason.exitCode, 2, 'a reason is no change');
  for (const reason of ['two\nlines', 'x'.repeat(501)])
    t.is((await run('account', 'unban', id, '--reason', reason)).exitCode, 2);
  t.is((await run('account', 'show', id, '--reason', 'reading')).exitCode, 2);
  t.regex((await run('account', 'unban', '--help')).stdout, /unban <account> \[--reason "why"\]/);
  t.notRegex((await run('account', 'show', '--help')).stdout, /--reason/);
  t.is((await listEvents(`account:${id}`)).length, 3);
});
