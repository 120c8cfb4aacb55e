import type { RefillCodeDocument } from '../../shared/accounts/refill-code-store.ts';
import {
  createCodes,
  describeCode,
  listCodes,
  revokeCode,
  listCodesOfBatch,
  revokeCodesOfBatch,
} from '../../shared/admin/codes.ts';
import { dryRunRevokeCodes } from '../../shared/admin/dry-run-access.ts';
import { readPages } from '../../shared/admin/page.ts';
import { maxCodesOfBatch, refillCodeStates } from '../../shared/contract/admin-terms.ts';
import { maxBalanceNano } from '../../shared/encoding/money.ts';
import {
  readInteger,
  readMoney,
  CommandError,
  UsageError,
  type AdminContext,
  type AdminVerb,
  type ChangeContext,
} from './command.ts';

const maxCodes = 10_000;
/** Codes that are read together. */
const pageSize = 100;

export const codeVerbs: Record<string, AdminVerb> = {
  create: {
    usage: '[--balance 50] [--free-requests 0] [--count 3] [--expires 2027-01-01]',
    help: 'creates refill codes, and prints them; they cannot be shown again',
    positionals: 0,
    options: ['balance', 'free-requests', 'count', 'expires'],
    isChange: true,
    run: create,
  },
  list: {
    usage: '[--status unused] [--batch <batch>]',
    help: 'lists codes by their last four characters, latest first; only those that are unused, redeemed, expired or revoked, or that one call created; --unused is --status unused',
    positionals: 0,
    options: ['status', 'batch'],
    flags: ['unused'],
    run: showCodes,
  },
  revoke: {
    usage: '<code> | --batch <batch> [--dry-run]',
    help: 'invalidates a code that has not been redeemed, or all such codes that one call created; --dry-run only says what they are worth',
    positionals: 0,
    optionalPositionals: 1,
    options: ['batch'],
    flags: ['dry-run'],
    isChange: true,
    run: revoke,
  },
};

async function create(context: ChangeContext): Promise<unknown> {
  const { options, trail } = context;
  const balanceNano = readMoney(options, 'balance', '0');
  const freeRequests = readInteger(options, 'free-requests', 0, 0);
  const count = readInteger(options, 'count', 1, 1, maxCodes);
  if (balanceNano < 0n || balanceNano > maxBalanceNano)
    throw new UsageError('--balance must be from 0 to 9000000.');
  if (balanceNano === 0n && freeRequests === 0)
    throw new UsageError('Specify the value of the code: --balance, --free-requests or both.');
  const code = { balanceNano, freeRequests, expiresAt: readDay(options['expires']) };
  const created: string[] = [];
  while (created.length < count) {
    const next = Math.min(count - created.length, maxCodesOfBatch);
    const { codes } = await createCodes(context, trail, next, code);
    created.push(...(codes ?? []));
  }
  return { codes: created };
}

async function showCodes(context: AdminContext): Promise<unknown> {
  const { options, flags } = context;
  const given = options['status'] ?? (flags.has('unused') ? 'unused' : undefined);
  const status = refillCodeStates.find((known) => known === given) ?? null;
  if (given !== undefined && status === null)
    throw new UsageError(`--status must be one of ${refillCodeStates.join(', ')}.`);
  const filter = { status, batch: options['batch'] ?? null };
  return describeCodes(readPages((after) => listCodes(context, filter, { limit: pageSize, after })));
}

async function* describeCodes(codes: AsyncIterable<RefillCodeDocument>): AsyncGenerator<object> {
  for await (const code of codes) yield { ...describeCode(code), batch: code.batch ?? null };
}

async function revoke(context: ChangeContext): Promise<unknown> {
  const { positionals, options, flags, trail } = context;
  const [text] = positionals;
  const { batch } = options;
  if ((text === undefined) === (batch === undefined))
    throw new UsageError('Specify a code, or --batch with the batch of codes.');
  if (batch !== undefined) {
    const found = await listCodesOfBatch(context, batch);
    if (found === null) throw new CommandError('There are no codes with this batch.');
    if (flags.has('dry-run')) return dryRunRevokeCodes(found);
    return { batch, codes: await revokeCodesOfBatch(context, trail, batch, found) };
  }
  const code = await context.codes.find(text!);
  if (code === null) throw new CommandError('There is no such code.');
  if (flags.has('dry-run')) return dryRunRevokeCodes([code]);
  return describeCode(await revokeCode(context, trail, code));
}

/** Returns the end of a day given as YYYY-MM-DD, in UTC. */
function readDay(text: string | undefined): Date | null {
  if (text === undefined) return null;
  const end = new Date(`${text}T23:59:59.999Z`);
  if (
    !/^\d{4}-\d{2}-\d{2}$/.test(text) ||
    Number.isNaN(end.getTime()) ||
    !end.toISOString().startsWith(text)
  ) {
    throw new UsageError('--expires must be a day, such as 2027-01-01');
  }
  if (end.getTime() < Date.now()) throw new UsageError('--expires must not be in the past');
  return end;
}
