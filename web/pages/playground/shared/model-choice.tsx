import { useMemo } from 'preact/hooks';
import { SiteLink } from '../../../frame/site-link.tsx';
import { useMessages } from '../../../lib/language.tsx';
import { modelHref, modelName, type Model } from '../../../lib/models.ts';
import { Combobox } from '../../../ui/combobox.tsx';
import { ModelPrices } from '../../../ui/model-prices.tsx';
import type en from '../messages.en.ts';

/** The model, with what it costs. */
export function ModelChoice({
  models,
  model,
  onChoose,
}: {
  readonly models: readonly Model[];
  readonly model: Model;
  readonly onChoose: (id: string) => void;
}) {
  const t = useMessages<typeof en>();
  const choices = useMemo(
    () => models.map((other) => ({ value: other.id, label: modelName(other) })),
    [models],
  );
  return (
    <div class="playground-model">
      <Combobox label={t('model')} choices={choices} value={model.id} onChoose={onChoose} />
      <div class="playground-prices small soft">
        <ModelPrices model={model} />
        <p>
          <SiteLink href={modelHref(model.id)}>{t('aboutModel')}</SiteLink>
        </p>
      </div>
    </div>
  );
}
