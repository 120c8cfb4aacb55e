import { maxBalanceNano } from '../../shared/pricing/money.ts';
import { readInteger, readMoney, UsageError, type AdminContext, type AdminVerb } from './command.ts';

export const codeVerbs: Record<string, AdminVerb> = {
  create: {
    usage: '--balance 50 [--free-requests 0] [--count 3] [--expires 2027-01-01]',
    positionals: 0,
    options: ['balance', 'free-requests', 'count', 'expires'],
    run: createCodes,
  },
};

async function createCodes({ codes, options }: AdminContext): Promise<unknown> {
  const balanceNano = readMoney(options, 'balance', '0');
  const freeRequests = readInteger(options, 'free-requests', 0, 0);
  const count = readInteger(options, 'count', 1, 1, 10_000);
  if (balanceNano < 0n || balanceNano > maxBalanceNano)
    throw new UsageError('--balance must be from 0 to 9000000');
  if (balanceNano === 0n && freeRequests === 0)
    throw new UsageError('say what the code is worth: --balance or --free-requests');
  return {
    codes: await codes.create(count, { balanceNano, freeRequests, expiresAt: readDay(options['expires']) }),
  };
}

/** The end of a day given as YYYY-MM-DD, in UTC. */
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
