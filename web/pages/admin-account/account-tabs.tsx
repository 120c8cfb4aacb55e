import { useAddressFilters } from '../../lib/address-filters.ts';
import { useMessages } from '../../lib/language.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import type { Account } from './account.ts';
import { BatchesTab } from './batches-tab.tsx';
import { ChangesTab } from './changes-tab.tsx';
import { JobsTab } from './jobs-tab.tsx';
import type en from './messages.en.ts';
import { RequestsTab } from './requests-tab.tsx';
import { SpendTab } from './spend-tab.tsx';

const contents = {
  requests: RequestsTab,
  jobs: JobsTab,
  batches: BatchesTab,
  spend: SpendTab,
  changes: ChangesTab,
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
