import type { ComponentChildren } from 'preact';
import { formatRub } from '../../shared/encoding/money.ts';
import {
  breakDown,
  isPerMillion,
  type Breakdown,
  type ChargedRequest,
  type CostLine,
} from '../lib/break-down.ts';
import { useFormat } from '../lib/format.ts';
import { useMessages } from '../lib/language.tsx';
import { countDigits, toNano } from '../lib/nano.ts';
import type en from './cost-texts.en.ts';
import { Table } from './table.tsx';

/**
 * Rate × quantity for each part of a cost, which add up to it to the last digit. Pages that use it add its texts to
 * theirs.
 */
export function CostTable({
  title,
  row,
  unknownText,
  children,
}: {
  readonly title: string;
  readonly row: ChargedRequest;
  /** Why there is no breakdown, if there is none. */
  readonly unknownText: string;
  /** More about it. */
  readonly children?: ComponentChildren;
}) {
  const format = useFormat();
  const breakdown = breakDown(row);
  return (
    <section class="cost-table">
      <h3>{title}</h3>
      {breakdown === null ? (
        <>
          <p class="cost-table-sum money">{format.exactMoney(row.cost_request)}</p>
          <p class="small soft">{unknownText}</p>
        </>
      ) : (
        <Lines title={title} breakdown={breakdown} costNano={toNano(row.cost_request)} />
      )}
      {children}
    </section>
  );
}

function Lines({
  title,
  breakdown: { lines, roundingNano, freeNano, shortfallNano },
  costNano,
}: {
  readonly title: string;
  readonly breakdown: Breakdown;
  readonly costNano: bigint;
}) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const rest = [
    { text: t('rounding'), nano: roundingNano },
    { text: t('paidByFreeRequest'), nano: -freeNano },
    { text: t('beyondBalance'), nano: -shortfallNano },
  ].filter(({ nano }) => nano !== 0n);
  // Digits stand under each other.
  const digits = Math.max(...[...lines, ...rest, { nano: costNano }].map(({ nano }) => countDigits(nano)));
  const write = (nano: bigint): string => format.exactMoney(formatRub(nano), digits);
  const writeQuantity = ({ quantity }: CostLine): string => format.exactNumber(quantity);
  const writeRate = ({ part, rate }: CostLine): string =>
    isPerMillion(part) ? t('perMillion', { price: format.price(rate) }) : format.price(rate);
  return (
    <Table
      caption={title}
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
