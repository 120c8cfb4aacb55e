import { useAddressFilters } from '../../lib/address-filters.ts';
import { RefreshButton } from '../../admin/refresh-button.tsx';
import { useMessages } from '../../lib/language.tsx';
import { lazy } from '../../lib/lazy.tsx';
import { QueryView, Skeleton } from '../../ui/states.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import './admin-models.css';
import type en from './messages.en.ts';
import { ModelList } from './model-list.tsx';
import { useAdminModels, useAdminRoutes, useHistories } from './read-catalog.ts';
import { viewModels } from './routes.ts';

const loading = () => <Skeleton lines={10} height="2.5rem" />;
const UpstreamList = lazy(async () => (await import('./upstream-list.tsx')).UpstreamList, loading);
const ModelDialog = lazy(
  async () => (await import('./model-dialog.tsx')).ModelDialog,
  () => null,
);

const tabs = ['models', 'upstreams'] as const;
type TabName = (typeof tabs)[number];

export default function AdminModelsPage() {
  const t = useMessages<typeof en>();
  const [filters, change] = useAddressFilters();
  const models = useAdminModels();
  const routes = useAdminRoutes();
  const histories = useHistories().data;
  const tab = tabs.find((name) => name === filters.get('tab')) ?? 'models';
  const opened = filters.get('model');
  const views =
    models.data === undefined || routes.data === undefined
      ? undefined
      : viewModels(models.data, routes.data, histories);
  const query = {
    data: views,
    error: models.error ?? routes.error,
    refetch: () => Promise.all([models.refetch(), routes.refetch()]),
  };
  return (
    <div class="page admin-models">
      <div class="page-head">
        <h1>{t('title')}</h1>
        <RefreshButton />
      </div>
      <Tabs<TabName>
        label={t('title')}
        value={tab}
        onChange={(value) => change({ tab: value === 'models' ? null : value })}
        list={[
          {
            value: 'models',
            label: t('models'),
            content: (
              <QueryView query={query} loading={loading()}>
                {(data) => <ModelList models={data} />}
              </QueryView>
            ),
          },
          {
            value: 'upstreams',
            label: t('upstreams'),
            content: (
              <QueryView query={query} loading={loading()}>
                {(data) => <UpstreamList routes={data.flatMap((view) => view.routes)} />}
              </QueryView>
            ),
          },
        ]}
      />
      {opened !== null && <ModelDialog id={opened} query={query} onClose={() => change({ model: null })} />}
    </div>
  );
}
