import { statusOfRefillCode, type RefillCodeDocument } from '../../shared/accounts/refill-code-store.ts';
import { maxBalanceNano, toRubNumber } from '../../shared/encoding/money.ts';
import {
  readInteger,
  readMoney,
  CommandError,
  UsageError,
  type AdminContext,
  type AdminVerb,
} from './command.ts';

export const codeVerbs: Record<string, AdminVerb> = {
  create: {
    usage: '[--balance 50] [--free-requests 0] [--count 3] [--expires 2027-01-01]',
    help: 'creates refill codes, and prints them; they cannot be shown again',
    positionals: 0,
    options: ['balance', 'free-requests', 'count', 'expires'],
    run: createCodes,
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
    run: revokeCode,
  },
};

/** Shows only the end of a code, because only its hash is stored. */
function describeCode(code: RefillCodeDocument) {
  return {
    code: code.hint,
    balance: toRubNumber(code.balanceNano),
    free_requests: code.freeRequests,
    created_at: code.createdAt.toISOString(),
    expires_at: code.expiresAt?.toISOString() ?? null,
    status: statusOfRefillCode(code, new Date()),
    redeemed_by: code.redeemed?.accountId ?? null,
    redeemed_at: code.redeemed?.at.toISOString() ?? null,
  };
}

async function createCodes({ codes, options }: AdminContext): Promise<unknown> {
  const balanceNano = readMoney(options, 'balance', '0');
  const freeRequests = readInteger(options, 'free-requests', 0, 0);
  const count = readInteger(options, 'count', 1, 1, 10_000);
  if (balanceNano < 0n || balanceNano > maxBalanceNano)
    throw new UsageError('--balance must be from 0 to 9000000.');
  if (balanceNano === 0n && freeRequests === 0)
    throw new UsageError('Specify the value of the code: --balance, --free-requests or both.');
  return {
    codes: await codes.create(count, { balanceNano, freeRequests, expiresAt: readDay(options['expires']) }),
  };
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

async function revokeCode({ codes, positionals }: AdminContext): Promise<unknown> {
  const text = positionals[0]!;
  await codes.revoke(text);
  const code = await codes.find(text);
  if (code === null) throw new CommandError('There is no such code.');
  if (code.redeemed !== null) {
    throw new CommandError(
      `The code was redeemed by ${code.redeemed.accountId} on ${code.redeemed.at.toISOString()}; it cannot be revoked.`,
    );
  }
  return describeCode(code);
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
