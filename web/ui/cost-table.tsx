import type { ComponentChildren } from 'preact';
import {
  breakDown,
  isPerMillion,
  type Breakdown,
  type ChargedRequest,
  type CostLine,
} from '../lib/break-down.ts';
import { useFormat } from '../lib/format.ts';
import { useMessages } from '../lib/language.tsx';
import { countDigits, fromNano, toNano } from '../lib/nano.ts';
import type en from './cost-texts.en.ts';
import { Table } from './table.tsx';

/** A sum of the table with its name. */
export interface CostSum {
  readonly text: string;
  readonly nano: bigint;
}

/**
 * Rate × quantity for each part of the cost, which add up to it to the last digit. Pages that use it add its texts to
 * theirs.
 */
export function CostTable({
  row,
  below = [],
}: {
  readonly row: ChargedRequest & { readonly success: boolean; readonly estimated: boolean };
  /** Further sums, which follow the total. */
  readonly below?: readonly CostSum[];
}) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const breakdown = breakDown(row);
  const isPlain = breakdown === null && below.length === 0;
  return (
    <section class="cost-table">
      <h3>{t('cost')}</h3>
      {isPlain ? (
        <p class="cost-table-sum money">{format.exactMoney(row.cost_request)}</p>
      ) : (
        <Lines breakdown={breakdown ?? unknown} costNano={toNano(row.cost_request)} below={below} />
      )}
      {breakdown === null && (
        <p class="small soft">{t(!row.success && row.cost_request === 0 ? 'notCharged' : 'noRates')}</p>
      )}
      {row.estimated && <p class="small soft">{t('estimatedText')}</p>}
    </section>
  );
}

const unknown: Breakdown = { lines: [], roundingNano: 0n, freeNano: 0n, shortfallNano: 0n };

function Lines({
  breakdown: { lines, roundingNano, freeNano, shortfallNano },
  costNano,
  below,
}: {
  readonly breakdown: Breakdown;
  readonly costNano: bigint;
  readonly below: readonly CostSum[];
}) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const rest = [
    { text: t('rounding'), nano: roundingNano },
    { text: t('paidByFreeRequest'), nano: -freeNano },
    { text: t('beyondBalance'), nano: -shortfallNano },
  ].filter(({ nano }) => nano !== 0n);
  // Digits stand under each other.
  const sums = [...lines, ...rest, { nano: costNano }, ...below];
  const digits = Math.max(...sums.map(({ nano }) => countDigits(nano)));
  const write = (nano: bigint): string => format.exactMoney(fromNano(nano), digits);
  const writeQuantity = ({ quantity }: CostLine): string => format.exactNumber(quantity);
  const writeRate = ({ part, rate }: CostLine): string =>
    isPerMillion(part) ? t('perMillion', { price: format.price(rate) }) : format.price(rate);
  return (
    <Table
      caption={t('breakdown')}
      rows={lines}
      keyOf={({ part }) => part}
      columns={[
        {
          name: t('part'),
          isHeader: true,
          render: (line) => (
            <>
              {t(`part_${line.part}`)}
              <span class="cost-table-beside">
                {t('times', { quantity: writeQuantity(line), rate: writeRate(line) })}
              </span>
            </>
          ),
        },
        { name: t('quantity'), isNumber: true, isMinor: true, render: writeQuantity },
        { name: t('rate'), isNumber: true, isMinor: true, render: writeRate },
        { name: t('amount'), isNumber: true, render: ({ nano }) => write(nano) },
      ]}
      foot={
        <>
          {rest.map(({ text, nano }) => (
            <FootRow key={text} name={text} isSoft>
              {write(nano)}
            </FootRow>
          ))}
          <FootRow name={t('total')}>{write(costNano)}</FootRow>
          {below.map(({ text, nano }) => (
            <FootRow key={text} name={text} isSoft>
              {write(nano)}
            </FootRow>
          ))}
        </>
      }
    />
  );
}

const FootRow = ({
  name,
  isSoft = false,
  children,
}: {
  readonly name: string;
  readonly isSoft?: boolean;
  readonly children: ComponentChildren;
}) => (
  <tr class={isSoft ? 'cost-table-rest' : ''}>
    <th scope="row">{name}</th>
    <td class="minor" />
    <td class="minor" />
    <td class="number">{children}</td>
  </tr>
);
