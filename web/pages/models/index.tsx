import { useAddressFilters } from '../../lib/address-filters.ts';
import { useMessages } from '../../lib/language.tsx';
import { useModels, type Model } from '../../lib/models.ts';
import { Skeleton, QueryView } from '../../ui/states.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { Calculator } from './calculator.tsx';
import { readChosen } from './chosen-models.ts';
import { Comparison } from './comparison.tsx';
import type en from './messages.en.ts';
import { ModelList } from './model-list.tsx';
import './models.css';

const views = ['list', 'compare', 'calculator'] as const;
type View = (typeof views)[number];

export default function ModelsPage() {
  const t = useMessages<typeof en>();
  const query = useModels();
  return (
    <div class="page models">
      <header class="page-head">
        <div>
          <h1>{t('title')}</h1>
          <p>{t('lead')}</p>
        </div>
      </header>
      <QueryView query={query} loading={<Skeleton lines={8} height="5rem" />}>
        {(models) => <Views models={models} />}
      </QueryView>
    </div>
  );
}

function Views({ models }: { readonly models: readonly Model[] }) {
  const t = useMessages<typeof en>();
  const [filters, change] = useAddressFilters();
  const view = views.find((name) => name === filters.get('view')) ?? 'list';
  const chosen = readChosen(filters, models);
  const content: Readonly<Record<View, preact.ComponentChild>> = {
    list: <ModelList models={models} chosen={chosen} />,
    compare: <Comparison models={models} chosen={chosen} />,
    calculator: <Calculator models={models} chosen={chosen} />,
  };
  return (
    <Tabs
      label={t('title')}
      value={view}
      onChange={(next) => change({ view: next === 'list' ? null : next })}
      list={views.map((value) => ({ value, label: t(`view_${value}`), content: content[value] }))}
    />
  );
}
