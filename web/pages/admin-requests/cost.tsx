import { Margin, type AdminRequest } from '../../admin/request-table.tsx';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { CostTable } from '../../ui/cost-table.tsx';
import type en from './messages.en.ts';

/** What the customer paid, what the vendors charge, and what is left. */
export function Cost({ row }: { readonly row: AdminRequest }) {
  const t = useMessages<typeof en>();
  const { rates, quantities, cost, shortfall, free, outcome, estimated } = row;
  return (
    <>
      <CostTable
        title={t('paidByCustomer')}
        row={{ rates, quantities, cost_request: cost, shortfall, is_free_request: free }}
        unknownText={t(cost > 0 ? 'noRates' : outcome === 'error' ? 'notCharged' : 'nothingCharged')}
      >
        {estimated === true && <p class="small soft">{t('estimatedText')}</p>}
      </CostTable>
      {!row.is_expired && <VendorCost row={row} />}
    </>
  );
}

function VendorCost({ row }: { readonly row: AdminRequest }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { vendor_rates: rates, vendor_quantities: quantities, vendor_cost: vendorCost, margin, cost } = row;
  if (vendorCost === null)
    return (
      <section class="cost-table">
        <h3>{t('vendorCost')}</h3>
        <p class="small soft">{t('noVendorCost')}</p>
      </section>
    );
  return (
    <>
      <CostTable
        title={t('vendorCost')}
        row={{ rates, quantities, cost_request: vendorCost, shortfall: 0, is_free_request: false }}
        unknownText={t(vendorCost > 0 ? 'noVendorRates' : 'nothingCharged')}
      />
      <section class="cost-table">
        <h3>{t('margin')}</h3>
        <p class="cost-table-sum">
          <Margin value={margin} />
          {cost > 0 && margin !== null && (
            <span class="admin-requests-share"> {format.percent(margin / cost)}</span>
          )}
        </p>
      </section>
    </>
  );
}
