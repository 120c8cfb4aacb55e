import { strictNames, type NameRule } from '../tool-names.ts';
import type { OpenAiProfile } from '../../../shared/catalog/openai-profile.ts';

/**
 * How a chat is written for a server with OpenAI's API. Which fields it does not accept at all is part of the catalog.
 */
export interface Profile {
  /** Fields that the server knows by another name. */
  readonly names: Readonly<Record<string, string>>;
  /** The name of the token limit. */
  readonly limit: 'max_tokens' | 'max_completion_tokens';
  /** Whether the server knows the role `developer`. To others, it is `system`. */
  readonly hasDeveloper: boolean;
  /** Whether usage in a stream must be asked for. */
  readonly hasStreamOptions: boolean;
  /** The field in which earlier reasoning is sent back; null if the server accepts none. */
  readonly reasoning: 'reasoning_content' | 'reasoning' | null;
  /** Whether messages may have names, other than those of tools. */
  readonly hasNames: boolean;
  /** What an id of a tool call must look like; null if anything. */
  readonly callIds: { readonly pattern: RegExp; readonly length: number } | null;
  /** What names of functions it takes; null if it takes any. */
  readonly toolNames: NameRule | null;
  /** Whether a last message of the assistant must be marked as the beginning of the reply. */
  readonly marksPrefix: boolean;
}

const compatible: Profile = {
  names: {},
  limit: 'max_tokens',
  hasDeveloper: false,
  hasStreamOptions: true,
  reasoning: 'reasoning_content',
  hasNames: true,
  callIds: null,
  toolNames: null,
  marksPrefix: false,
};

const openAi: Profile = {
  ...compatible,
  limit: 'max_completion_tokens',
  hasDeveloper: true,
  reasoning: null,
  toolNames: strictNames,
};

export const profiles: Readonly<Record<OpenAiProfile, Profile>> = {
  openai: openAi,
  azure: openAi,
  mistral: {
    ...compatible,
    names: { seed: 'random_seed', dimensions: 'output_dimension' },
    // Usage comes without being asked for, and the question is refused.
    hasStreamOptions: false,
    reasoning: null,
    hasNames: false,
    callIds: { pattern: /^[a-zA-Z0-9]{9}$/, length: 9 },
    toolNames: strictNames,
    marksPrefix: true,
  },
  deepseek: compatible,
  groq: { ...compatible, limit: 'max_completion_tokens', reasoning: 'reasoning', hasNames: false },
  cerebras: { ...compatible, limit: 'max_completion_tokens', reasoning: 'reasoning' },
  openrouter: { ...compatible, reasoning: 'reasoning' },
  vllm: compatible,
  ollama: { ...compatible, reasoning: 'reasoning' },
  llamacpp: { ...compatible, names: { repetition_penalty: 'repeat_penalty' } },
  tei: compatible,
  compatible,
};
