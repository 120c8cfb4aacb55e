import { useMessages } from '../../lib/language.tsx';
import { Badge, type Tone } from '../../ui/card.tsx';
import type en from './messages.en.ts';
import type { ModelState } from './routes.ts';

const tones: Readonly<Record<ModelState, Tone>> = {
  active: 'good',
  failing: 'bad',
  disabled: 'warning',
  drained: 'warning',
  unserved: 'neutral',
};

export const StateBadge = ({ state }: { readonly state: ModelState }) => {
  const t = useMessages<typeof en>();
  return <Badge tone={tones[state]}>{t(`state_${state}`)}</Badge>;
};
