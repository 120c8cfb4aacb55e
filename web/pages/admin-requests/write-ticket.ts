import type { AdminRequest } from '../../admin/request-table.tsx';
import type { Format } from '../../lib/format.ts';
import type { Translate } from '../../lib/messages.ts';
import type en from './messages.en.ts';

/** What a request was, as text for a ticket. What vendors charge is not in it: customers may read tickets. */
export function writeTicket(
  row: AdminRequest,
  link: string,
  t: Translate<typeof en>,
  format: Format,
): string {
  const { attempts, total_time: seconds, prompt_tokens: input, completion_tokens: output } = row;
  const facts: readonly (readonly [string, string | null])[] = [
    [t('request'), row.id],
    [t('time'), row.created_at],
    [t('account'), row.account],
    [t('model'), row.model],
    [t('outcome'), describeOutcome(row)],
    [t('duration'), seconds === null ? null : format.seconds(seconds)],
    [t('tokens'), input === null ? null : `${format.number(input)} → ${format.number(output ?? 0)}`],
    [t('cost'), format.exactMoney(row.cost)],
  ];
  const calls = attempts.map(
    ({ upstream, status, reason, duration_ms: ms }, i) =>
      `  ${i + 1}. ${upstream}, ${status ?? t('noStatus')}, ${format.seconds(ms / 1_000)}${reason === null ? '' : `: ${reason}`}`,
  );
  return [
    ...facts.flatMap(([name, value]) => (value === null ? [] : [`${name}: ${value}`])),
    ...(calls.length === 0 ? [] : [`${t('attempts')}:`, ...calls]),
    link,
  ].join('\n');
}

const describeOutcome = ({ outcome, status, code, details }: AdminRequest): string | null =>
  outcome === null ? null : [status, code, details].filter((part) => part !== null).join(' ');
