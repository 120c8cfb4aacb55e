import { randomUUID } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import { parseRub } from '../../shared/encoding/money.ts';
import { runRefill } from '../../shared/accounts/refill-script.ts';
import { createRefillEvent } from '../../shared/ledger/usage-event.ts';
import { startStack, type TestAccount, type TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';
import { watchRedis } from '../support/watch-redis.ts';
import { sendUncountedBodies } from './attacks/uncounted-bodies.ts';

/** The api does not tokenize requests of accounts that would be rejected for any request. */

const catalog = `
upstreams: { builtin: { kind: builtin } }
models:
  - id: echo
    type: chat
    context: 200000
    pricing: { type: tokens, prompt: 50, completion: 150 }
    routes: [{ upstream: builtin, model: demo-echo }]
  - id: heavy-echo
    type: chat
    context: 200000
    rpm_coefficient: 4
    pricing: { type: tokens, prompt: 50, completion: 150 }
    routes: [{ upstream: builtin, model: demo-echo }]
  - id: short-echo
    type: chat
    context: 8192
    pricing: { type: tokens, prompt: 50, completion: 150 }
    routes: [{ upstream: builtin, model: demo-echo }]
`;

let stack: TestStack;

test.before(async () => {
  stack = await startStack({ catalog });
});
test.after.always(() => stack.close());

/**
 * Counts the Redis queries about an account: admissions run after tokenization, pre-admissions before it. Both have the
 * account's hash as their first key and its rate-limit window as the second. A pre-admission has one more key. An
 * admission has two more keys, and another two if it also pushes the chat.
 */
async function watchAdmissions(t: ExecutionContext, { id }: TestAccount) {
  const commands = await watchRedis(t, stack.config.redisUrl);
  const count = (keyCounts: readonly number[]): number => {
    const keyArguments = keyCounts.map(
      (keys) => `"${keys}" "${redisKeys.account(id)}" "${redisKeys.rpmWindow(id)}"`,
    );
    return commands.filter(
      ({ name, args }) => name === 'evalsha' && keyArguments.some((text) => args.includes(text)),
    ).length;
  };
  /** Waits before it counts, because MONITOR shows a command a moment after Redis has replied to it. */
  const waitAndCount = async (...keyCounts: number[]): Promise<number> => {
    const mark = randomUUID();
    await stack.redis.echo(mark);
    await waitFor('MONITOR to catch up', () => commands.some(({ args }) => args.includes(mark)));
    return count(keyCounts);
  };
  return { countAdmissions: () => waitAndCount(4, 6), countPreAdmissions: () => waitAndCount(3) };
}

const setField = (account: TestAccount, field: string, value: string): Promise<number> =>
  stack.redis.hset(redisKeys.account(account.id), field, value);

const attack = (account: TestAccount, requests: number, concurrency: number, model = 'echo') =>
  sendUncountedBodies({ url: stack.url, apiKey: account.apiKey, model, requests, concurrency });

const refusals: Record<string, { status: number; prepare: (account: TestAccount) => Promise<unknown> }> = {
  'is banned': { status: 403, prepare: (account) => setField(account, 'ban', '1') },
  'has no money': { status: 402, prepare: (account) => setField(account, 'bal', '0') },
  'is at its limit': { status: 429, prepare: (account) => setField(account, 'rpm', '0') },
};

for (const [what, { status, prepare }] of Object.entries(refusals)) {
  test.serial(
    `for an account that ${what}, the first request is tokenized and later ones are not`,
    async (t) => {
      const account = await stack.createAccount();
      await prepare(account);
      const queries = await watchAdmissions(t, account);
      t.deepEqual([...(await attack(account, 20, 1))], [[status, 20]]);
      t.is(await queries.countAdmissions(), 1);
      t.is(await queries.countPreAdmissions(), 19);
    },
  );

  test.serial(
    `if an account that ${what} sends many requests simultaneously, only a few are tokenized`,
    async (t) => {
      const account = await stack.createAccount();
      await prepare(account);
      const queries = await watchAdmissions(t, account);
      t.deepEqual([...(await attack(account, 64, 64))], [[status, 64]]);
      const admissions = await queries.countAdmissions();
      t.true(admissions <= 32, `${admissions} requests were tokenized`);
    },
  );
}

test.serial('after the first one, requests too long for their model use up the rate limit', async (t) => {
  const account = await stack.createAccount({ rpm: 5 });
  const statuses = await attack(account, 12, 1, 'short-echo');
  t.is(statuses.get(400), 6);
  t.is(statuses.get(429), 6);
});

test.serial(
  'an account with a sufficient balance and requests left in its rate limit needs no pre-admission',
  async (t) => {
    const account = await stack.createAccount();
    const queries = await watchAdmissions(t, account);
    t.deepEqual([...(await attack(account, 5, 1))], [[200, 5]]);
    t.is(await queries.countAdmissions(), 5);
    t.is(await queries.countPreAdmissions(), 0);
  },
);

test.serial(
  "a rejected account is served once the reason is gone, and each request uses only one slot of the model's rate limit",
  async (t) => {
    const account = await stack.createAccount({ balance: '0', rpm: 12 });
    t.deepEqual([...(await attack(account, 1, 1, 'heavy-echo'))], [[402, 1]]);
    await runRefill(stack.redis, {
      amountNano: parseRub('10')!,
      freeRequests: 0,
      event: createRefillEvent(`more-${account.id}`, account.id, 'test'),
    });
    t.deepEqual([...(await attack(account, 2, 1, 'heavy-echo'))], [[200, 2]]);
    t.deepEqual([...(await attack(account, 1, 1, 'heavy-echo'))], [[429, 1]]);
  },
);
