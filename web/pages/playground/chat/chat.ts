import { ApiError } from '../../../lib/api-error.ts';
import { refreshAccounts } from '../../../lib/accounts.ts';
import type { Model } from '../../../lib/models.ts';
import { readSelectedAccount } from '../../../lib/selected-account.ts';
import { onSessionEnd } from '../../../lib/session.ts';
import type { Store } from '../../../lib/store.ts';
import { readFailure } from '../shared/failure.ts';
import { findUsage } from '../shared/find-usage.ts';
import { addUsage, noUsage } from '../shared/usage.ts';
import { createChatRequest } from './chat-request.ts';
import { endTurn, openChatStore, type Answer, type ChatState, type Turn } from './chat-state.ts';
import { streamChat, type ChatListener } from './stream-chat.ts';

/** How often a running answer is shown anew (ms). Long texts take longer to show, and are shown less often. */
const showMs = 60;
const charsPerMs = 60;

const leaveMs = 300;
const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** A conversation. It goes on while other pages are shown. */
export class Chat {
  readonly store: Store<ChatState>;
  #running: AbortController | null = null;

  constructor(owner: string) {
    this.store = openChatStore(owner);
    onSessionEnd(() => this.stop());
    for (const turn of this.store.get().turns) this.#lookUpCost(turn);
  }

  get isRunning(): boolean {
    return this.#running !== null;
  }

  change(changes: Partial<ChatState>): void {
    this.store.set({ ...this.store.get(), ...changes });
  }

  /** Sends what was written. */
  send(model: Model): void {
    if (this.isRunning) return;
    const { turns, draft, draftPictures } = this.store.get();
    const id = (turns.at(-1)?.id ?? 0) + 1;
    this.change({ draft: '', draftPictures: [] });
    this.#run(model, [...turns, { id, text: draft, pictures: draftPictures, answer: begin(model) }]);
  }

  /** Answers a turn again. What came after it is dropped. */
  retry(id: number, model: Model): void {
    const turn = this.store.get().turns.find((other) => other.id === id);
    if (turn !== undefined) this.edit(id, turn.text, model);
  }

  /** Replaces the question of a turn and answers it. What came after it is dropped. */
  edit(id: number, text: string, model: Model): void {
    const { turns } = this.store.get();
    const index = turns.findIndex((turn) => turn.id === id);
    if (index === -1 || this.isRunning) return;
    this.#drop(turns.slice(index));
    this.#run(model, [...turns.slice(0, index), { ...turns[index]!, text, answer: begin(model) }]);
  }

  /**
   * Begins a new conversation, with the same instructions and options.
   * @returns a function that brings the old one back, unless the new one has begun
   */
  clear(): () => void {
    const { turns, spentBefore, hasLostPictures } = this.store.get();
    this.stop();
    this.change({ turns: [], spentBefore: noUsage, hasLostPictures: false });
    return () => {
      if (this.store.get().turns.length > 0) return;
      const restored = turns.map(endTurn);
      this.change({ turns: restored, spentBefore, hasLostPictures });
      for (const turn of restored) this.#lookUpCost(turn);
    };
  }

  /** Ends the request. What came is kept, and charged. */
  stop(): void {
    this.#running?.abort();
  }

  #drop(turns: readonly Turn[]): void {
    const { spentBefore } = this.store.get();
    this.change({ spentBefore: turns.reduce((sum, { answer }) => addUsage(sum, answer.usage), spentBefore) });
  }

  #changeAnswer(id: number, changes: Partial<Answer>): void {
    const { turns } = this.store.get();
    // It was deleted meanwhile, such as by signing out.
    if (!turns.some((turn) => turn.id === id)) return;
    this.change({
      turns: turns.map((turn) =>
        turn.id === id ? { ...turn, answer: { ...turn.answer, ...changes } } : turn,
      ),
    });
  }

  #run(model: Model, turns: readonly Turn[]): void {
    const controller = new AbortController();
    this.#running = controller;
    const { id } = turns.at(-1)!;
    this.change({ turns });
    const body = createChatRequest(model, this.store.get(), turns);
    const progress = new AnswerProgress((changes) => this.#changeAnswer(id, changes));
    const end = (changes: Partial<Answer>): void => {
      this.#running = null;
      progress.flush();
      this.#changeAnswer(id, { ...changes, position: null });
      const ended = this.store.get().turns.find((turn) => turn.id === id);
      if (ended !== undefined) this.#lookUpCost(ended);
      refreshAccounts().catch(() => undefined);
    };
    streamChat(body, controller.signal, progress).then(
      () => end({ status: 'done' }),
      async (error: unknown) => {
        // A page that is being left loses its connections first, and is gone before this has passed.
        if (error instanceof ApiError && error.code === 'network') await wait(leaveMs);
        end(
          controller.signal.aborted
            ? { status: 'stopped' }
            : { status: 'failed', failure: readFailure(error) },
        );
      },
    );
  }

  /** A request that did not end by itself does not say what it cost. The log does, soon after. */
  #lookUpCost({ id, answer }: Turn): void {
    const { status, requestId, usage, account } = answer;
    if (status === 'running' || usage !== null || requestId === null) return;
    if (status === 'failed' && answer.text === '' && answer.reasoning === '') return;
    findUsage(requestId, account).then(
      (found) => {
        const current = this.store.get().turns.find((turn) => turn.id === id);
        if (current?.answer.requestId === requestId) this.#changeAnswer(id, { usage: found });
      },
      () => undefined,
    );
  }
}

/** Collects the parts of an answer, so that it is not shown anew with each of them. */
class AnswerProgress implements ChatListener {
  readonly #show: (changes: Partial<Answer>) => void;
  #text = '';
  #reasoning = '';
  #timer: ReturnType<typeof setTimeout> | null = null;

  constructor(show: (changes: Partial<Answer>) => void) {
    this.#show = show;
  }

  onStart(requestId: string | null): void {
    this.#show({ requestId });
  }
  onPosition(position: number): void {
    this.#show({ position });
  }
  onText(text: string): void {
    this.#text += text;
    this.#showSoon();
  }
  onReasoning(text: string): void {
    this.#reasoning += text;
    this.#showSoon();
  }
  onFinish(finishReason: string): void {
    this.#show({ finishReason });
  }
  onUsage(usage: NonNullable<Answer['usage']>): void {
    this.#show({ usage });
  }

  flush(): void {
    if (this.#timer === null) return;
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#show({ text: this.#text, reasoning: this.#reasoning, position: null });
  }

  #showSoon(): void {
    const chars = this.#text.length + this.#reasoning.length;
    this.#timer ??= setTimeout(() => this.flush(), Math.max(showMs, chars / charsPerMs));
  }
}

const begin = (model: Model): Answer => ({
  status: 'running',
  model: model.id,
  text: '',
  reasoning: '',
  position: null,
  finishReason: null,
  requestId: null,
  account: readSelectedAccount(),
  usage: null,
  failure: null,
});

let open: { readonly owner: string; readonly chat: Chat } | null = null;

/** Returns the conversation of a user in this tab. */
export function openChat(owner: string): Chat {
  if (open?.owner !== owner) {
    open?.chat.stop();
    open = { owner, chat: new Chat(owner) };
  }
  return open.chat;
}
