import './admin-requests.css';
import { RefreshButton } from '../../admin/refresh-button.tsx';
import { useAddressFilters } from '../../lib/address-filters.ts';
import { useMessages } from '../../lib/language.tsx';
import { lazy } from '../../lib/lazy.tsx';
import { Skeleton } from '../../ui/states.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import type en from './messages.en.ts';
import { noFilter } from './request-filter.ts';
import { RequestList } from './request-list.tsx';

const SpendView = lazy(
  async () => (await import('./spend/spend-view.tsx')).SpendView,
  () => <Skeleton lines={10} height="3rem" />,
);

const views = ['list', 'spend'] as const;
type View = (typeof views)[number];

/** Both views have filters by account, model and upstream; what else the address has is of one of them. */
const { account: _a, model: _m, upstream: _u, ...onlyOfList } = noFilter;
const onlyOfSpend = { by: null, days: null, from: null, to: null, sort: null, order: null };

export default function AdminRequestsPage() {
  const t = useMessages<typeof en>();
  const [params, change] = useAddressFilters();
  const view = views.find((name) => name === params.get('view')) ?? 'list';
  const content = { list: <RequestList />, spend: <SpendView /> };
  return (
    <div class="page admin-requests">
      <div class="page-head">
        <h1>{t('title')}</h1>
        <RefreshButton />
      </div>
      <Tabs<View>
        label={t('title')}
        value={view}
        onChange={(name) =>
          change({ view: name === 'list' ? null : name, id: null, ...onlyOfList, ...onlyOfSpend })
        }
        list={views.map((value) => ({ value, label: t(`view_${value}`), content: content[value] }))}
      />
    </div>
  );
}
