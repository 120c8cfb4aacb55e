import './admin-audit.css';
import { useAddressFilters } from '../../lib/address-filters.ts';
import { useMessages } from '../../lib/language.tsx';
import { lazy } from '../../lib/lazy.tsx';
import { Skeleton } from '../../ui/states.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { Changes } from './changes.tsx';
import type en from './messages.en.ts';

const Tokens = lazy(
  async () => (await import('./tokens.tsx')).Tokens,
  () => <Skeleton lines={6} height="3rem" />,
);

export default function AdminAuditPage() {
  const t = useMessages<typeof en>();
  const [params, change] = useAddressFilters();
  return (
    <div class="page admin-audit">
      <div class="page-head">
        <h1>{t('title')}</h1>
      </div>
      <Tabs
        label={t('title')}
        value={params.get('tab') === 'tokens' ? 'tokens' : 'changes'}
        onChange={(tab) => change({ tab: tab === 'tokens' ? tab : null, id: null })}
        list={[
          { value: 'changes', label: t('tab_changes'), content: <Changes /> },
          { value: 'tokens', label: t('tab_tokens'), content: <Tokens /> },
        ]}
      />
    </div>
  );
}
