import { useCommon } from '../lib/language.tsx';
import type { ModelStatus } from '../lib/models.ts';
import { Badge, type Tone } from './card.tsx';

const tones: Readonly<Record<Exclude<ModelStatus['message'], 'Not enough data'>, Tone>> = {
  Good: 'good',
  Normal: 'good',
  Acceptable: 'warning',
  Bad: 'bad',
  Dead: 'bad',
  Disabled: 'neutral',
};

/** How a model performed in the last half hour, in a word. Nothing if too few have used it to tell. */
export const ModelHealth = ({ status }: { readonly status: ModelStatus | undefined }) => {
  const common = useCommon();
  if (status === undefined || status.message === 'Not enough data') return null;
  return <Badge tone={tones[status.message]}>{common(`health_${status.message}`)}</Badge>;
};
