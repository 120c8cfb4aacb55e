import { useAddressFilters } from '../../lib/address-filters.ts';
import { lazy } from '../../lib/lazy.tsx';
import { useMessages } from '../../lib/language.tsx';
import { Skeleton } from '../../ui/states.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import type { Account } from './account.ts';
import type en from './messages.en.ts';

const loading = () => <Skeleton lines={10} height="2rem" />;

const contents = {
  requests: lazy(async () => (await import('./requests-tab.tsx')).RequestsTab, loading),
  jobs: lazy(async () => (await import('./jobs-tab.tsx')).JobsTab, loading),
  batches: lazy(async () => (await import('./batches-tab.tsx')).BatchesTab, loading),
  refills: lazy(async () => (await import('./refills-tab.tsx')).RefillsTab, loading),
  addresses: lazy(async () => (await import('./addresses-tab.tsx')).AddressesTab, loading),
  spend: lazy(async () => (await import('./spend-tab.tsx')).SpendTab, loading),
  changes: lazy(async () => (await import('./changes-tab.tsx')).ChangesTab, loading),
} as const;

type TabName = keyof typeof contents;
const tabNames = Object.keys(contents) as readonly TabName[];

/** What an account has done, and what was done with it. */
export function AccountTabs({ account: { id } }: { readonly account: Account }) {
  const t = useMessages<typeof en>();
  const [filters, change] = useAddressFilters();
  const tab = tabNames.find((name) => name === filters.get('tab')) ?? 'requests';
  return (
    <Tabs
      label={t('title')}
      value={tab}
      onChange={(name) => change({ tab: name === 'requests' ? null : name, status: null })}
      list={tabNames.map((name) => {
        const Content = contents[name];
        return {
          value: name,
          label: t(`tab_${name}`),
          content: (
            <section class="card">
              <Content accountId={id} />
            </section>
          ),
        };
      })}
    />
  );
}
