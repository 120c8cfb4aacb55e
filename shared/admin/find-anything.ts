import { canBeRefillCode, hashSecret, isApiKey } from '../accounts/credentials.ts';
import { listSecrets } from '../contract/mask-secrets.ts';
import { RequestListStore } from '../ledger/request-list-store.ts';
import { mapBounded } from '../platform/runtime/map-bounded.ts';
import type { AdminDeps } from './admin-deps.ts';
import { AdminTokenStore } from './admin-token-store.ts';
import { findBatchOwner, isBatchId } from './batches.ts';
import { describeCode } from './codes.ts';
import { findJobOwner } from './jobs.ts';
import type { OwnedId } from './list-place.ts';
import { searchAccounts } from './search-accounts.ts';
import { findUser } from './users.ts';

export const foundKinds = [
  'account',
  'user',
  'request',
  'job',
  'batch',
  'code',
  'code_batch',
  'token',
  'model',
  'upstream',
] as const;

/** Something that a customer may name. */
export interface Found {
  readonly kind: (typeof foundKinds)[number];
  readonly id: string;
  /** Whose it is; of a code, who redeemed it. */
  readonly account: string | null;
  /** What people call it: a name, an address, or the status of a code. */
  readonly label: string | null;
}

type Deps = Pick<AdminDeps, 'accounts' | 'web' | 'redis' | 'codes' | 'ledger' | 'mongo'>;

/** Ids of accounts, requests, jobs and users. */
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** The number under which a user sees an account. */
const linkNumber = /^\d{1,10}$/;
const maxAccounts = 10;
const maxIds = 10;
/** Each starts a few reads. */
const maxTogether = 2;

/**
 * Finds whatever a customer names: an id of anything, an API key, a refill code, an address or a word of an account's name
 * or note; the name of a token; or up to ten ids. A key and a code are also found within other words. Asks each place at most
 * once for each.
 */
export async function findAnything(deps: Deps, text: string): Promise<Found[]> {
  const wanted = readWanted(text);
  const find = wanted.length > 1 ? findWholeId : findOne;
  const found = await mapBounded(wanted, maxTogether, (one) => find(deps, one));
  return [...new Map(found.flat().map((one) => [`${one.kind} ${one.id}`, one])).values()];
}

/** Whether a text has an API key, be it of an account or not. */
export const hasKey = (text: string): boolean => findKey(listSecrets(text)) !== undefined;
const findKey = (secrets: readonly string[]): string | undefined => secrets.find(isApiKey);

const header = 'x-request-id';
const isId = (word: string): boolean => uuid.test(word.toLowerCase()) || isBatchId(word.toLowerCase());

/** Reads several ids, or the one thing that is wanted. The header of a response may be copied with its name. */
function readWanted(text: string): string[] {
  const words = text
    .split(/[\s,;]+/)
    .map((word) => (word.toLowerCase().startsWith(`${header}:`) ? word.slice(header.length + 1) : word))
    .filter((word) => word !== '' && word !== ':' && word.toLowerCase() !== header);
  return words.length > 0 && words.every(isId) ? [...new Set(words)].slice(0, maxIds) : [text.trim()];
}

/** Of several ids, none is the beginning of another, a word, a code or a name. */
async function findWholeId(deps: Deps, wanted: string): Promise<Found[]> {
  const id = wanted.toLowerCase();
  if (isBatchId(id)) return toFound('batch', await findBatchOwner(deps, id));
  const found = await Promise.all([findById(deps, id), findUserOf(deps, id), describeAccount(deps, id)]);
  return found.flat();
}

async function findOne(deps: Deps, wanted: string): Promise<Found[]> {
  const secrets = listSecrets(wanted);
  const key = findKey(secrets);
  if (key !== undefined) return await findByKey(deps, key);
  const id = wanted.toLowerCase();
  const found = await Promise.all([
    uuid.test(id) ? findById(deps, id) : [],
    linkNumber.test(wanted) ? findByLink(deps, Number(wanted)) : [],
    findUserOf(deps, wanted),
    findBatchOwner(deps, id).then((owner) => toFound('batch', owner)),
    findCode(deps, secrets.find(canBeRefillCode) ?? wanted),
    findToken(deps, wanted),
    findAccounts(deps, wanted),
  ]);
  return found.flat();
}

const toFound = (kind: 'job' | 'batch', owner: OwnedId | null): Found[] =>
  owner === null ? [] : [{ kind, id: owner.id, account: owner.accountId, label: null }];

async function findUserOf(deps: Deps, given: string): Promise<Found[]> {
  const user = await findUser(deps, given);
  return user === null ? [] : [{ kind: 'user', id: user._id, account: null, label: user.email }];
}

async function findByKey({ accounts }: Deps, key: string): Promise<Found[]> {
  const id = await accounts.findIdByKeyHash(hashSecret(key));
  return id === null ? [] : await describeAccount({ accounts }, id);
}

async function describeAccount({ accounts }: Pick<Deps, 'accounts'>, id: string): Promise<Found[]> {
  const account = await accounts.findById(id);
  return account === null ? [] : [ofAccount(account)];
}

type AccountDocument = Awaited<ReturnType<typeof searchAccounts>>['rows'][number];

const ofAccount = ({ _id, name, email }: AccountDocument): Found => ({
  kind: 'account',
  id: _id,
  account: _id,
  label: name ?? email ?? null,
});

async function findById(deps: Deps, id: string): Promise<Found[]> {
  const [request, job, codes] = await Promise.all([
    new RequestListStore(deps.ledger).find(id),
    findJobOwner(deps, id).then((owner) => toFound('job', owner)),
    deps.codes.listPage({ status: null, batch: id }, null, 1),
  ]);
  const accountId = request?.row?.accountId ?? request?.entry?.accountId;
  return [
    ...(accountId === undefined
      ? []
      : [{ kind: 'request' as const, id, account: accountId, label: request?.row?.model ?? null }]),
    ...job,
    ...codes.map(() => ({ kind: 'code_batch' as const, id, account: null, label: null })),
  ];
}

async function findByLink({ accounts, web }: Deps, link: number): Promise<Found[]> {
  const found = await web.links.findById(link);
  return found === null ? [] : await describeAccount({ accounts }, found.accountId);
}

async function findCode({ codes }: Deps, text: string): Promise<Found[]> {
  const code = await codes.find(text);
  if (code === null) return [];
  const { code: hint, status, redeemed_by: account } = describeCode(code);
  return [{ kind: 'code', id: code._id, account, label: `${hint} (${status})` }];
}

async function findToken({ mongo, redis }: Deps, name: string): Promise<Found[]> {
  const token = await new AdminTokenStore(mongo.db, redis).find(name);
  return token === null ? [] : [{ kind: 'token', id: token._id, account: null, label: token._id }];
}

async function findAccounts(deps: Deps, text: string): Promise<Found[]> {
  const { rows } = await searchAccounts(deps, text, { limit: maxAccounts, after: null });
  return rows.map(ofAccount);
}
