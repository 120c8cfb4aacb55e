import { useEffect } from 'preact/hooks';
import { NoAccount } from '../../frame/no-account.tsx';
import { useAccounts, type ApiAccount } from '../../lib/accounts.ts';
import { useAddressFilters } from '../../lib/address-filters.ts';
import { mayUse } from '../../lib/allowed-models.ts';
import { lazy } from '../../lib/lazy.tsx';
import { useMessages } from '../../lib/language.tsx';
import { useModels, type Model } from '../../lib/models.ts';
import { useStore } from '../../lib/store.ts';
import { openTabStore } from '../../lib/tab-store.ts';
import { useSession } from '../../lib/session.ts';
import { EmptyState, QueryView, Skeleton } from '../../ui/states.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import type en from './messages.en.ts';
import './playground.css';
import './chat/chat.css';

const loading = () => <Skeleton lines={9} height="2.5rem" />;
const views = {
  chat: lazy<ModeProps>(async () => (await import('./chat/chat-view.tsx')).ChatView, loading),
  images: lazy<ModeProps>(async () => (await import('./images/images-view.tsx')).ImagesView, loading),
  embeddings: lazy<ModeProps>(
    async () => (await import('./embeddings/embeddings-view.tsx')).EmbeddingsView,
    loading,
  ),
};

const modes = ['chat', 'images', 'embeddings'] as const;
type Mode = (typeof modes)[number];

const modeOf = ({ type }: Model): Mode =>
  type === 'image' ? 'images' : type === 'embedding' ? 'embeddings' : 'chat';

export default function PlaygroundPage() {
  const t = useMessages<typeof en>();
  const { query, selected } = useAccounts();
  const models = useModels();
  const { user } = useSession();
  return (
    <div class="page playground">
      <h1>{t('title')}</h1>
      <QueryView query={query} loading={loading()}>
        {() =>
          selected === null ? (
            <section class="card">
              <NoAccount title={t('noAccount')} action={t('createAccount')}>
                {t('noAccountText')}
              </NoAccount>
            </section>
          ) : (
            <QueryView query={models} loading={loading()}>
              {(all) =>
                user === null ? (
                  loading()
                ) : (
                  <Modes account={selected} models={all} owner={user.id} key={user.id} />
                )
              }
            </QueryView>
          )
        }
      </QueryView>
    </div>
  );
}

/** What a mode gets: the models that it can use, and which of them is chosen. */
export interface ModeProps {
  readonly owner: string;
  readonly models: readonly Model[];
  readonly model: Model;
  readonly onChooseModel: (id: string) => void;
}

function Modes({
  account,
  models,
  owner,
}: {
  readonly account: ApiAccount;
  readonly models: readonly Model[];
  readonly owner: string;
}) {
  const t = useMessages<typeof en>();
  const [filters, changeFilters] = useAddressFilters();
  const id = filters.get('model');
  const named = models.find((model) => model.id === id);
  const wanted = modes.find((mode) => mode === filters.get('mode'));
  const mode = named === undefined ? (wanted ?? 'chat') : modeOf(named);
  // Those that were chosen before in each mode, to come back to: what stays of a conversation goes on with its model.
  const chosen = openTabStore<Partial<Record<Mode, string>>>({
    name: 'playground-models',
    owner,
    initial: {},
    shrink: (all) => all,
  });
  const before = useStore(chosen);
  useEffect(() => {
    if (named !== undefined) chosen.set({ ...chosen.get(), [mode]: named.id });
  }, [named?.id, mode]);
  const changeMode = (next: Mode): void => {
    const model = before[next] ?? null;
    changeFilters({ mode: model !== null || next === 'chat' ? null : next, model });
  };
  const show = (shown: Mode) => {
    const usable = models.filter(
      (model) => model.active && modeOf(model) === shown && mayUse(account, model.id),
    );
    const find = (wantedId: string | undefined | null) => usable.find((other) => other.id === wantedId);
    const model = find(id) ?? find(before[shown]) ?? usable[0];
    if (model === undefined) return <EmptyState title={t('noModels')}>{t('noModelsText')}</EmptyState>;
    const View = views[shown];
    return (
      <View
        owner={owner}
        models={usable}
        model={model}
        onChooseModel={(chosen) => changeFilters({ model: chosen, mode: null })}
      />
    );
  };
  return (
    <Tabs
      label={t('title')}
      value={mode}
      onChange={changeMode}
      list={modes.map((value) => ({ value, label: t(`mode_${value}`), content: show(value) }))}
    />
  );
}
