import test from 'ava';
import { findMailCode } from '../../../scripts/embedded/smtp/read-mail.ts';
import { RefillCodeStore } from '../../../shared/accounts/refill-code-store.ts';
import { parseRub } from '../../../shared/encoding/money.ts';
import { readCode } from '../../support/mailbox.ts';
import { useStack } from '../../support/stack.ts';
import { WebClient } from '../../support/web-client.ts';

interface AccountBody {
  readonly id: number;
  readonly label: string;
  readonly is_primary: boolean;
  readonly balance: string;
  readonly free_requests: number;
  readonly key_masked: string;
}

test('a user signs up by mail, creates an account, redeems a code, reveals, replaces and unlinks the key, and signs out', async (t) => {
  const env = { WEB_CAPTCHA: 'off', SIGNUP_BALANCE: '5', SIGNUP_FREE_REQUESTS: '3' };
  const stack = await useStack(t, { mail: true, env });
  const mailbox = stack.mailbox!;
  const client = new WebClient(stack.url);
  const email = 'anna@example.com';
  const readMailedCode = async (to: string): Promise<string> => readCode(await mailbox.waitForMail(to));
  const requestConfirmation = async (path: string): Promise<{ challenge_id: string; code: string }> => {
    const requested = await client.request('POST', path, { email });
    t.is(requested.status, 201);
    const { challenge_id } = (await requested.json()) as { challenge_id: string };
    const code = readCode(await mailbox.waitForMail(email, ({ text }) => findMailCode(text) !== null));
    return { challenge_id, code };
  };
  const { user } = await client.signIn('Anna@Example.com', () => readMailedCode(email), {
    timezone: 'Europe/Moscow',
  });
  t.is(user.email, email);
  t.is(user.timezone, 'Europe/Moscow');

  const first = await client.request('POST', '/api-accounts/first', {});
  t.is(first.status, 201);
  const { account, api_key: apiKey } = (await first.json()) as { account: AccountBody; api_key: string };
  t.like(account, { label: 'Основной', is_primary: true, balance: '5', free_requests: 3 });
  t.is((await client.request('POST', '/api-accounts/first', {})).status, 409);
  t.is(account.key_masked, `${apiKey.slice(0, 7)}…${apiKey.slice(-4)}`);

  const path = `/api-accounts/${account.id}`;
  const codes = new RefillCodeStore(stack.mongo.db);
  const [code] = await codes.create(1, { balanceNano: parseRub('50')!, freeRequests: 0, expiresAt: null });
  const redeemed = await client.request('POST', `${path}/redeem`, { code });
  t.like(await redeemed.json(), { balance: '55', balance_added: '50', total_balance_added: '55' });
  const log = (await (await client.request('GET', `${path}/refill-logs`)).json()) as { items: unknown[] };
  t.like(log.items[0], { refill_code_redeemed: code });

  const revealed = await client.request(
    'POST',
    `${path}/reveal`,
    await requestConfirmation(`${path}/reveal/request-code`),
  );
  t.deepEqual(await revealed.json(), { api_key: apiKey });

  const replaced = await client.request(
    'PUT',
    `${path}/regenerate-api-key`,
    await requestConfirmation(`${path}/regenerate-api-key/request-code`),
  );
  const { api_key: newKey } = (await replaced.json()) as { api_key: string };
  const profileOf = (key: string) =>
    fetch(`${stack.url}/v1/users/profile`, { headers: { authorization: `Bearer ${key}` } });
  t.is((await profileOf(newKey)).status, 200);
  t.is((await profileOf(apiKey)).status, 401);

  const unlinked = await client.request(
    'DELETE',
    path,
    await requestConfirmation(`${path}/unlink/request-code`),
  );
  t.is(unlinked.status, 204);
  t.deepEqual(await (await client.request('GET', '/api-accounts')).json(), []);

  t.is((await client.request('POST', '/auth/logout')).status, 204);
  t.is((await client.request('GET', '/auth/me')).status, 401);
});
