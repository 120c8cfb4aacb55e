import { deepseek } from './deepseek.ts';
import { llamacpp } from './llamacpp.ts';
import { mistral } from './mistral.ts';
import { ollama } from './ollama.ts';
import { openrouter } from './openrouter.ts';
import type { Personality } from './personality.ts';
import { tei } from './tei.ts';
import { vllm } from './vllm.ts';

/** The servers that the simulator can be like. To add one, add an entry here. */
export const personalities = {
  vllm,
  ollama,
  llamacpp,
  mistral,
  deepseek,
  openrouter,
  tei,
} as const satisfies Record<string, Personality>;

export type ServerName = keyof typeof personalities;

export const serverNames = Object.keys(personalities) as readonly ServerName[];

export const isServerName = (name: string): name is ServerName => Object.hasOwn(personalities, name);
