// `node find-demo-account.js`: reads what an earlier start saved about the demo account as JSON from stdin, and prints
// the account as JSON.
import { text } from 'node:stream/consumers';
import type { AccountDocument } from '../../shared/accounts/account-store.ts';
import { hashSecret, isSameHash } from '../../shared/accounts/credentials.ts';
import { createAccount } from '../../shared/admin/accounts.ts';
import { parseRub } from '../../shared/encoding/money.ts';
import { openTrail } from '../admin/open-trail.ts';
import { describeFailure, withStores, type AdminStores } from '../admin/with-stores.ts';

/** What an earlier start saved about the demo account. */
export interface KnownDemo {
  readonly id: string | null;
  readonly apiKey: string | null;
}

export interface DemoAccount {
  readonly id: string;
  /** Null if its key was replaced and is stored only as a hash, or under another master key. */
  readonly apiKey: string | null;
  /** Null if it is not banned. */
  readonly banReason: string | null;
  /** The id of the account that an earlier start saved, if this database does not contain it and another was created. */
  readonly missingAccount: string | null;
}

/** Identifies the account if no start has saved its id. No operator would use this name for customer accounts. */
const userType = 'start-demo';

async function findDemoAccount(stores: AdminStores, known: KnownDemo): Promise<DemoAccount> {
  const account = await findExisting(stores, known);
  if (account === null) {
    const trail = openTrail(stores, (text) => process.stderr.write(`${text}\n`), null);
    const { account: created, apiKey } = await createAccount(stores, trail, {
      amountNano: parseRub('100')!,
      freeRequests: 10,
      requestsPerMinute: stores.config.defaultRpm,
      userType,
    });
    return { id: created.id, apiKey, banReason: null, missingAccount: known.id };
  }
  const { _id: id, keyHash, banned, banReason } = account;
  const isKnown = known.apiKey !== null && isSameHash(hashSecret(known.apiKey), keyHash);
  const apiKey = isKnown ? known.apiKey : await stores.accounts.revealKey(id);
  return { id, apiKey, banReason: banned ? (banReason ?? 'no reason given') : null, missingAccount: null };
}

async function findExisting({ accounts }: AdminStores, known: KnownDemo): Promise<AccountDocument | null> {
  const savedAccount = known.id === null ? null : await accounts.findById(known.id);
  return savedAccount ?? (await accounts.findFirstOfType(userType));
}

try {
  const known = JSON.parse(await text(process.stdin)) as KnownDemo;
  await withStores(process.env, async (stores) => {
    process.stdout.write(JSON.stringify(await findDemoAccount(stores, known)));
  });
} catch (error) {
  process.stderr.write(`${describeFailure(error)}\n`);
  process.exitCode = 1;
}
