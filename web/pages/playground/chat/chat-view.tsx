import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { useMessages } from '../../../lib/language.tsx';
import { useStore } from '../../../lib/store.ts';
import { Button } from '../../../ui/button.tsx';
import { EmptyState } from '../../../ui/states.tsx';
import { offerUndo } from '../../../ui/toast.tsx';
import type { ModeProps } from '../index.tsx';
import type en from '../messages.en.ts';
import { ShowCode } from '../shared/code-dialog.tsx';
import { ModelChoice } from '../shared/model-choice.tsx';
import { UsageTotal } from '../shared/usage-line.tsx';
import { openChat } from './chat.ts';
import { createChatRequest } from './chat-request.ts';
import { sumChat, type ChatState } from './chat-state.ts';
import { ChatSettings } from './chat-settings.tsx';
import { Composer } from './composer.tsx';
import { TurnView } from './turn-view.tsx';

/** A conversation with a model, beside its settings. */
export function ChatView({ owner, models, model, onChooseModel }: ModeProps) {
  const t = useMessages<typeof en>();
  const chat = useMemo(() => openChat(owner), [owner]);
  const state = useStore(chat.store);
  const [areSettingsOpen, setAreSettingsOpen] = useState(false);
  const list = useRef<HTMLDivElement>(null);
  const takeBackOffer = useRef<(() => void) | null>(null);
  const hasTurns = state.turns.length > 0;
  useEffect(() => {
    // A conversation that has begun is not replaced by the old one.
    if (hasTurns) takeBackOffer.current?.();
  }, [hasTurns]);
  const startAnew = (): void => {
    takeBackOffer.current = offerUndo(t('chatCleared'), t('bringBack'), chat.clear());
  };
  useFollowedEnd(list, state);
  const readRequest = () => ({
    kind: 'chat' as const,
    body: createChatRequest(model, state, listShownTurns(state)),
  });
  return (
    <div class="playground-columns">
      <section class="chat card" aria-label={t('conversation')}>
        <header class="chat-head">
          <UsageTotal label={t('conversationCost')} sum={sumChat(state)} />
          <div class="chat-head-actions">
            <ShowCode read={readRequest} />
            <Button kind="quiet" icon="plus" disabled={!hasTurns} onClick={startAnew}>
              {t('newChat')}
            </Button>
          </div>
        </header>
        <div class="chat-turns" ref={list} tabIndex={0} role="region" aria-label={t('messages')}>
          {!hasTurns ? (
            <EmptyState title={t('emptyChat')}>{t('emptyChatText')}</EmptyState>
          ) : (
            state.turns.map((turn) => (
              <TurnView key={turn.id} turn={turn} chat={chat} model={model} isBusy={chat.isRunning} />
            ))
          )}
        </div>
        <p class="unseen" role="status">
          {state.turns.at(-1)?.answer.status === 'done' ? t('answered') : ''}
        </p>
        {state.hasLostPictures && <p class="small soft">{t('lostPictures')}</p>}
        <Composer chat={chat} state={state} model={model} />
      </section>
      <aside class="playground-side card" aria-label={t('settings')}>
        <ModelChoice models={models} model={model} onChoose={onChooseModel} />
        <Button
          class="playground-toggle"
          icon="sliders"
          aria-expanded={areSettingsOpen}
          aria-controls="chat-settings"
          onClick={() => setAreSettingsOpen(!areSettingsOpen)}
        >
          {t('settings')}
        </Button>
        <div id="chat-settings" class={`playground-settings ${areSettingsOpen ? 'open' : ''}`}>
          <ChatSettings state={state} model={model} onChange={(changes) => chat.change(changes)} />
        </div>
      </aside>
    </div>
  );
}

/** The request that would be sent now; with nothing written, the last one. */
function listShownTurns({ turns, draft, draftPictures }: ChatState) {
  if (draft.trim() === '' && draftPictures.length === 0 && turns.length > 0) return turns;
  return [...turns, { text: draft, pictures: draftPictures, answer: { text: '' } }];
}

const nearEndPx = 80;

/** Keeps the end of the conversation in view, unless somebody has scrolled up to read. */
function useFollowedEnd(list: { current: HTMLDivElement | null }, { turns }: ChatState): void {
  const isFollowing = useRef(true);
  const count = turns.length;
  useEffect(() => {
    const element = list.current;
    if (element === null) return;
    const note = (): void => {
      isFollowing.current = element.scrollHeight - element.scrollTop - element.clientHeight < nearEndPx;
    };
    element.addEventListener('scroll', note, { passive: true });
    return () => element.removeEventListener('scroll', note);
  }, []);
  useEffect(() => {
    isFollowing.current = true;
  }, [count]);
  useEffect(() => {
    if (isFollowing.current) list.current?.scrollTo({ top: list.current.scrollHeight });
  }, [turns]);
}
