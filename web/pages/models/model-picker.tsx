import { useMessages } from '../../lib/language.tsx';
import { modelName, type Model } from '../../lib/models.ts';
import { Button } from '../../ui/button.tsx';
import { Combobox } from '../../ui/combobox.tsx';
import { maxChosen } from './chosen-models.ts';
import type en from './messages.en.ts';

/** The chosen models, each with a button to remove it, and a field to add one. */
export function ModelPicker({
  models,
  chosen,
  onToggle,
}: {
  readonly models: readonly Model[];
  readonly chosen: readonly Model[];
  readonly onToggle: (id: string) => void;
}) {
  const t = useMessages<typeof en>();
  const others = models.filter((model) => !chosen.includes(model));
  return (
    <div class="models-picker">
      {chosen.length > 0 && (
        <ul class="models-picked" aria-label={t('chosenModels')}>
          {chosen.map((model) => (
            <li key={model.id}>
              {modelName(model)}
              <Button
                kind="quiet"
                size="small"
                icon="close"
                aria-label={t('remove', { name: modelName(model) })}
                onClick={() => onToggle(model.id)}
              />
            </li>
          ))}
        </ul>
      )}
      {chosen.length < maxChosen && others.length > 0 && (
        <Combobox
          key={chosen.length}
          label={t('addModel')}
          placeholder={t('addModelHint')}
          choices={others.map((model) => ({ value: model.id, label: modelName(model) }))}
          value={null}
          onChoose={onToggle}
        />
      )}
    </div>
  );
}
