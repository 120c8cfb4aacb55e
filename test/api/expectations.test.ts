import { once } from 'node:events';
import test, { type ExecutionContext } from 'ava';
import { AccountStore } from '../../shared/accounts/account-store.ts';
import { HotAccountStore } from '../../shared/accounts/hot-account-store.ts';
import { LedgerStore } from '../../shared/ledger/ledger-store.ts';
import { changeAccount } from '../../shared/accounts/change-account.ts';
import { openRaw, sendRaw } from '../support/raw-caller.ts';
import { useStack, type TestStack } from '../support/stack.ts';

/**
 * Callers that send `Expect: 100-continue` get an error status before they send a body that would be rejected.
 */

async function sendHead(stack: TestStack, path: string, head: string, version = '1.1'): Promise<number[]> {
  const { socket, responses } = await openRaw(stack.url);
  socket.write(
    `POST ${path} HTTP/${version}\r\nhost: gateway\r\nexpect: 100-continue\r\nconnection: close\r\n${head}\r\n`,
  );
  await once(socket, 'data');
  // If the server asked for the body, ending the request here closes the connection, because the body is missing.
  socket.end();
  return (await responses()).map(({ status }) => status);
}

/** @returns the error message of the response */
async function sendEmptyBody(stack: TestStack, head: string): Promise<string> {
  const lines = `expect: 100-continue\r\nconnection: close\r\ntransfer-encoding: chunked\r\n${head}`;
  const bytes = `POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\n${lines}\r\n0\r\n\r\n`;
  const last = (await sendRaw(stack.url, bytes)).at(-1)!;
  return (JSON.parse(last.body) as { error: { message: string } }).error.message;
}

async function checkRefusal(
  t: ExecutionContext,
  stack: TestStack,
  status: number,
  head: string,
  path = '/v1/chat/completions',
): Promise<void> {
  t.deepEqual(await sendHead(stack, path, head), [status], `${path}\r\n${head}`);
}

const json = 'content-type: application/json\r\n';

test('a body is not requested if the key, size, content type or balance is wrong', async (t) => {
  const stack = await useStack(t);
  const funded = await stack.createAccount();
  const unfunded = await stack.createAccount({ balance: '0' });
  const banned = await stack.createAccount();
  const limited = await stack.createAccount({ rpm: 1 });
  const { redis, mongo, config } = stack;
  const accounts = new AccountStore(mongo.db, config);
  const stores = {
    redis,
    accounts,
    hotAccounts: new HotAccountStore(redis, accounts, new LedgerStore(mongo.db)),
  };
  await changeAccount(stores, banned.id, { banned: true, banReason: 'test' });
  const key = (apiKey: string): string => `authorization: Bearer ${apiKey}\r\n`;
  for (const length of [
    'content-length: 100\r\n',
    'content-length: 1000000\r\n',
    'transfer-encoding: chunked\r\n',
  ]) {
    await checkRefusal(t, stack, 401, `${json}${length}`);
    await checkRefusal(t, stack, 401, `${json}${length}${key(`mg-${'A'.repeat(43)}`)}`);
    await checkRefusal(t, stack, 415, `content-type: text/plain\r\n${length}${key(funded.apiKey)}`);
    await checkRefusal(t, stack, 404, `${json}${length}${key(funded.apiKey)}`, '/v1/nothing');
    await checkRefusal(t, stack, 405, `${json}${length}${key(funded.apiKey)}`, '/v1/models');
  }
  await checkRefusal(t, stack, 413, `${json}content-length: 100000000000\r\n${key(funded.apiKey)}`);
  const small = 'content-length: 100\r\n';
  // A rejected expectation does not count against the rate limit; otherwise an account at its limit could never get
  // enough free slots for a model with a large coefficient.
  for (let i = 0; i < 2; i++) {
    t.deepEqual(
      await sendHead(stack, '/v1/chat/completions', `${json}${small}${key(limited.apiKey)}`),
      [100, 400],
    );
  }
  // An empty body is handled as without the Expect header: the error reports the missing field.
  const empty = await sendEmptyBody(stack, `${json}${key(funded.apiKey)}`);
  t.regex(empty, /^model: is required/);
  const chat = { model: 'demo-echo', messages: [{ role: 'user', content: 'Hello!' }] };
  t.is((await stack.post('/v1/chat/completions', limited.apiKey, chat)).status, 200);
  for (const length of [small, 'content-length: 1000000\r\n', 'transfer-encoding: chunked\r\n']) {
    await checkRefusal(t, stack, 403, `${json}${length}${key(banned.apiKey)}`);
    await checkRefusal(t, stack, 402, `${json}${length}${key(unfunded.apiKey)}`);
    await checkRefusal(t, stack, 429, `${json}${length}${key(limited.apiKey)}`);
  }
  // HTTP/1.0 has no interim responses.
  t.deepEqual(
    await sendHead(stack, '/v1/chat/completions', `${json}content-length: 0\r\n${key(funded.apiKey)}`, '1.0'),
    [422],
  );
});
