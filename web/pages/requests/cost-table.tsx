import type { ComponentChildren } from 'preact';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { formatRub } from '../../../shared/encoding/money.ts';
import { countDigits, toNano } from '../../lib/nano.ts';
import { Table } from '../../ui/table.tsx';
import { breakDown, isPerMillion, type Breakdown, type CostLine } from './break-down.ts';
import type en from './messages.en.ts';
import type { RequestRow } from './read-log.ts';

/** Rate × quantity for each part of the cost, which add up to it to the last digit. */
export function CostTable({ row }: { readonly row: RequestRow }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const breakdown = breakDown(row);
  return (
    <section class="requests-cost">
      <h3>{t('cost')}</h3>
      {breakdown === null ? (
        <>
          <p class="requests-sum money">{format.exactMoney(row.cost_request)}</p>
          <p class="small soft">{t(!row.success && row.cost_request === 0 ? 'notCharged' : 'noRates')}</p>
        </>
      ) : (
        <Lines breakdown={breakdown} costNano={toNano(row.cost_request)} />
      )}
      {row.estimated && <p class="small soft">{t('estimatedText')}</p>}
    </section>
  );
}

function Lines({ breakdown, costNano }: { readonly breakdown: Breakdown; readonly costNano: bigint }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { lines, roundingNano, freeNano, shortfallNano } = breakdown;
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
              <span class="requests-beside">
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
  <tr class={isSoft ? 'requests-rest' : ''}>
    <th scope="row">{name}</th>
    <td class="minor" />
    <td class="minor" />
    <td class="number">{children}</td>
  </tr>
);
