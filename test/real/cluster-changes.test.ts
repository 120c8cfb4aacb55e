import test from 'ava';
import { AccountStore } from '../../shared/accounts/account-store.ts';
import { changeAccount } from '../../shared/accounts/change-account.ts';
import { HotAccountStore } from '../../shared/accounts/hot-account-store.ts';
import { LedgerStore } from '../../shared/ledger/ledger-store.ts';
import { startChat } from '../support/disconnecting-caller.ts';
import { startOtherApi } from '../support/other-api.ts';
import { firstBalance } from './check-books.ts';
import { useClusterStack, writeWords } from './cluster-world.ts';

/** Each process learns of a ban through its own subscription. */
const otherProcesses = 3;
/** A minute of words: only the ban ends these streams. */
const content = writeWords('w', 600);

test('a ban reaches every api process over the Cluster, and ends their streams', async (t) => {
  t.timeout(60_000);
  const { stack } = await useClusterStack(t);
  const urls = [stack.url];
  for (let i = 0; i < otherProcesses; i++) urls.push(await startOtherApi(t, stack));
  const createAccount = () => stack.createAccount({ balance: firstBalance });
  const [banned, other] = [await createAccount(), await createAccount()];
  const body = { model: 'drip-100', stream: true, messages: [{ role: 'user', content }] };
  const open = ({ apiKey }: { apiKey: string }) =>
    urls.map((url) => startChat({ ...stack, url }, apiKey, body));
  const streams = open(banned);
  const [unaffected] = open(other);
  await Promise.all([...streams, unaffected!].map((stream) => stream.readUntil('w-3')));

  const accounts = new AccountStore(stack.mongo.db, stack.config);
  const hotAccounts = new HotAccountStore(stack.redis, accounts, new LedgerStore(stack.mongo.db));
  const bannedAtMs = performance.now();
  const change = { banned: true, banReason: 'test' };
  await changeAccount({ redis: stack.redis, accounts, hotAccounts }, banned.id, change);
  for (const stream of streams) t.regex(await stream.rest(), /"code":"account_banned"/);
  t.log(
    `${Math.round(performance.now() - bannedAtMs)} ms until the last stream of ${urls.length} processes had ended`,
  );
  await unaffected!.readUntil('w-9');
  unaffected!.leave();
});
