import { openTabStore } from '../../../lib/tab-store.ts';
import type { Failure } from '../shared/failure.ts';
import type { Picture } from '../shared/pictures.ts';
import { addUsage, noUsage, type Usage, type UsageSum } from '../shared/usage.ts';

export interface Answer {
  /** `stopped`: by the user, or by a reload. */
  readonly status: 'running' | 'done' | 'stopped' | 'failed';
  readonly model: string;
  readonly text: string;
  readonly reasoning: string;
  /** How many requests are before it in the queue; null if it does not wait. */
  readonly position: number | null;
  readonly finishReason: string | null;
  readonly requestId: string | null;
  /** Of the account that pays. */
  readonly account: number | null;
  /** Null while it is unknown. */
  readonly usage: Usage | null;
  readonly failure: Failure | null;
}

/** A question and its answer. */
export interface Turn {
  readonly id: number;
  readonly text: string;
  readonly pictures: readonly Picture[];
  readonly answer: Answer;
}

/** Options as they were typed; empty is the default. */
export interface ChatOptions {
  readonly temperature: string;
  readonly top_p: string;
  readonly max_tokens: string;
  readonly frequency_penalty: string;
  readonly presence_penalty: string;
  readonly reasoning_effort: string;
  readonly web_search: '' | 'links' | 'no-links';
  readonly image_quality: string;
}

export interface ChatState {
  readonly turns: readonly Turn[];
  /** What answers cost that were replaced or deleted. */
  readonly spentBefore: UsageSum;
  readonly system: string;
  readonly options: ChatOptions;
  readonly draft: string;
  readonly draftPictures: readonly Picture[];
  /** Whether pictures were left out of what the browser kept. */
  readonly hasLostPictures: boolean;
}

export const defaultOptions: ChatOptions = {
  temperature: '',
  top_p: '',
  max_tokens: '',
  frequency_penalty: '',
  presence_penalty: '',
  reasoning_effort: '',
  web_search: '',
  image_quality: '',
};

const initial: ChatState = {
  turns: [],
  spentBefore: noUsage,
  system: '',
  options: defaultOptions,
  draft: '',
  draftPictures: [],
  hasLostPictures: false,
};

export const openChatStore = (owner: string) =>
  openTabStore<ChatState>({
    name: 'playground-chat-2',
    owner,
    initial,
    shrink: (state) => ({
      ...state,
      turns: state.turns.map((turn) => ({ ...turn, pictures: [] })),
      draftPictures: [],
      hasLostPictures: true,
    }),
    revive: (state) => ({ ...state, turns: state.turns.map(endTurn) }),
  });

/** A reload ends what was running. */
export const endTurn = (turn: Turn): Turn =>
  turn.answer.status === 'running'
    ? { ...turn, answer: { ...turn.answer, status: 'stopped', position: null } }
    : turn;

/** What all requests of the conversation used, those of replaced answers included. */
export const sumChat = ({ turns, spentBefore }: ChatState): UsageSum =>
  turns.reduce((sum, { answer }) => addUsage(sum, answer.usage), spentBefore);
