import type { FilterChanges } from '../../lib/address-filters.ts';
import { useMessages } from '../../lib/language.tsx';
import { modelName, type Model } from '../../lib/models.ts';
import { Button } from '../../ui/button.tsx';
import type en from './messages.en.ts';

/** What to do with the models that were chosen in the list. It stays in sight while the list scrolls. */
export function ChosenBar({
  chosen,
  onChange,
}: {
  readonly chosen: readonly Model[];
  readonly onChange: (changes: FilterChanges) => void;
}) {
  const t = useMessages<typeof en>();
  if (chosen.length === 0) return null;
  return (
    <section class="models-chosen" aria-label={t('chosenModels')}>
      <p>
        <strong>{t('chosen', { count: chosen.length })}</strong>{' '}
        <span class="soft">{chosen.map(modelName).join(', ')}</span>
      </p>
      <div class="models-actions">
        <Button kind="primary" size="small" onClick={() => onChange({ view: 'compare' })}>
          {t('compareChosen')}
        </Button>
        <Button size="small" onClick={() => onChange({ view: 'calculator' })}>
          {t('calculateChosen')}
        </Button>
        <Button kind="quiet" size="small" onClick={() => onChange({ models: null })}>
          {t('clearChosen')}
        </Button>
      </div>
    </section>
  );
}
