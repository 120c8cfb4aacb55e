import { addDays, readDay, toDay } from '../../shared/ledger/days.ts';
import { presentSpend, writeSpendCsv } from '../../shared/ledger/present-spend.ts';
import {
  defaultDimensions,
  defaultSpendDays,
  hasAccountAndUpstream,
  noSumsOfBoth,
  spendDimensions,
  type SpendDimension,
  type SpendRow,
} from '../../shared/ledger/sum-spend.ts';
import { quote } from '../../shared/platform/runtime/to-printable.ts';
import { PlainText, UsageError, type AdminContext, type AdminVerb } from './command.ts';
import { findAccountId } from './find-account.ts';

export const spendVerbs: Record<string, AdminVerb> = {
  '': {
    usage:
      '[--account <account>] [--upstream openai] [--model gpt-4o] [--since 2026-11-01] [--until 2026-11-30] [--by account,model,day] [--csv]',
    help:
      'sums requests, tokens, what customers paid, what vendors charge, and the margin, by any of account, model and ' +
      'day, or of upstream, model and day; both days are included, in UTC; the last 30 days by default',
    positionals: 0,
    options: ['account', 'upstream', 'model', 'since', 'until', 'by'],
    flags: ['csv'],
    run: sumSpend,
  },
};

async function sumSpend(context: AdminContext): Promise<unknown> {
  const { ledger, options, flags } = context;
  const { account, upstream, model } = options;
  const until = readDayOption(options, 'until') ?? toDay(new Date());
  const since = readDayOption(options, 'since') ?? addDays(until, 1 - defaultSpendDays);
  if (since > until) throw new UsageError(`--since ${since} must not be after --until ${until}.`);
  const by = readDimensions(options['by'] ?? defaultDimensions.join(','));
  const accountId = account === undefined ? undefined : await findAccountId(context, account);
  if (hasAccountAndUpstream({ accountId, upstream }, by)) throw new UsageError(`--by ${noSumsOfBoth}.`);
  const pages = ledger.spend.readPages({ accountId, upstream, model, since, until }, by);
  return flags.has('csv') ? new PlainText(writeSpendCsv(pages, by)) : presentRows(pages);
}

async function* presentRows(pages: AsyncIterable<readonly SpendRow[]>): AsyncGenerator<object> {
  for await (const rows of pages) yield* rows.map(presentSpend);
}

function readDayOption(options: AdminContext['options'], name: 'since' | 'until'): string | null {
  const text = options[name];
  if (text === undefined) return null;
  const day = readDay(text);
  if (day === null)
    throw new UsageError(`--${name} must be a day, such as 2026-11-30; it is ${quote(text)}.`);
  return day;
}

function readDimensions(text: string): Set<SpendDimension> {
  const names = text.split(',').map((name) => name.trim());
  const wrong = names.find((name) => !(spendDimensions as readonly string[]).includes(name));
  if (wrong !== undefined)
    throw new UsageError(`--by must list any of ${spendDimensions.join(', ')}; it has ${quote(wrong)}.`);
  return new Set(names as SpendDimension[]);
}
