import { useCommon } from '../lib/language.tsx';
import type { ModelStatus } from '../lib/models.ts';
import { Badge, type Tone } from './card.tsx';

const tones: Readonly<Record<ModelStatus['message'], Tone>> = {
  Good: 'good',
  Normal: 'good',
  Acceptable: 'warning',
  Bad: 'bad',
  Dead: 'bad',
  Disabled: 'neutral',
  'Not enough data': 'neutral',
};

/** How a model performed in the last half hour, in a word. */
export const ModelHealth = ({ message }: { readonly message: ModelStatus['message'] }) => {
  const common = useCommon();
  return <Badge tone={tones[message]}>{common(`health_${message}`)}</Badge>;
};
