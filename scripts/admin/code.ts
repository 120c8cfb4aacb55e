import { createCodes, describeCode, revokeCode } from '../../shared/admin/codes.ts';
import { maxCodesOfBatch } from '../../shared/contract/admin-terms.ts';
import { maxBalanceNano } from '../../shared/encoding/money.ts';
import {
  readInteger,
  readMoney,
  CommandError,
  UsageError,
  type AdminContext,
  type AdminVerb,
} from './command.ts';

const maxCodes = 10_000;

export const codeVerbs: Record<string, AdminVerb> = {
  create: {
    usage: '[--balance 50] [--free-requests 0] [--count 3] [--expires 2027-01-01]',
    help: 'creates refill codes, and prints them; they cannot be shown again',
    positionals: 0,
    options: ['balance', 'free-requests', 'count', 'expires'],
    run: create,
  },
  list: {
    usage: '[--unused]',
    help: 'lists codes by their last four characters; --unused omits those that no longer work',
    positionals: 0,
    options: [],
    flags: ['unused'],
    run: listCodes,
  },
  revoke: {
    usage: '<code>',
    help: 'invalidates a code that has not been redeemed',
    positionals: 1,
    options: [],
    run: revoke,
  },
};

async function create(context: AdminContext): Promise<unknown> {
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

async function listCodes(context: AdminContext): Promise<unknown> {
  return readCodes(context);
}

async function* readCodes({ codes, flags }: AdminContext): AsyncGenerator<object> {
  for await (const code of codes.list()) {
    const row = describeCode(code);
    if (!flags.has('unused') || row.status === 'unused') yield row;
  }
}

async function revoke(context: AdminContext): Promise<unknown> {
  const code = await context.codes.find(context.positionals[0]!);
  if (code === null) throw new CommandError('There is no such code.');
  return describeCode(await revokeCode(context, context.trail, code));
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
