import type { ModelType } from './models.ts';

/** What a model does, by the names of OpenTelemetry's semantic conventions for GenAI. */
export type GenAiOperation = 'chat' | 'embeddings' | 'generate_content';

export const genAiOperations: Readonly<Record<ModelType, GenAiOperation>> = {
  chat: 'chat',
  vision: 'chat',
  embedding: 'embeddings',
  image: 'generate_content',
};
