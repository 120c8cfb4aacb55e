import { replyTokens } from '../../harness/stack/standard-stack.ts';
import type { LoadScenario } from './load-scenario.ts';

const body = {
  messages: [
    { role: 'system', content: 'You are a helpful assistant who answers in a few plain sentences.' },
    { role: 'user', content: 'How do I keep the bread that I bake at home fresh for more than two days?' },
  ],
  max_tokens: 200,
};

const common = {
  callers: 64,
  background: 0,
  requestsEach: null,
  vendor: 'instant',
  path: '/chat/completions',
  models: { direct: 'gpt-sim', gateway: 'bench-chat' },
} as const;

export const chatScenarios: readonly LoadScenario[] = [
  {
    ...common,
    name: 'chat',
    group: 'chat',
    title: 'Chat, not streamed',
    body,
    expects: { kind: 'chat', tokens: replyTokens },
  },
  {
    ...common,
    name: 'chat-observed',
    group: 'observed',
    title: 'Chat, not streamed, while metrics and demand are read once a second',
    body,
    expects: { kind: 'chat', tokens: replyTokens },
    isObserved: true,
  },
  {
    ...common,
    name: 'stream',
    group: 'stream',
    title: `Chat, streamed (${replyTokens} tokens)`,
    body: { ...body, stream: true, stream_options: { include_usage: true } },
    expects: { kind: 'stream', tokens: replyTokens },
  },
];
