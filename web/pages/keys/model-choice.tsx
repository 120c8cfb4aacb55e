import { useState } from 'preact/hooks';
import type { ApiAccount } from '../../lib/accounts.ts';
import { isAllowed } from '../../lib/allowed-models.ts';
import { useCommon, useMessages } from '../../lib/language.tsx';
import { useModels } from '../../lib/models.ts';
import { Checkbox, Field } from '../../ui/field.tsx';
import { QueryView } from '../../ui/states.tsx';
import type en from './messages.en.ts';

/** The models that the operator allows, to choose from. */
export function ModelChoice({
  account,
  chosen,
  error,
  onChange,
}: {
  readonly account: ApiAccount;
  readonly chosen: readonly string[];
  readonly error: string | null;
  readonly onChange: (models: readonly string[]) => void;
}) {
  const t = useMessages<typeof en>();
  const common = useCommon();
  const query = useModels();
  const [wanted, setWanted] = useState('');
  const toggle = (id: string, isChosen: boolean): void =>
    onChange(isChosen ? [...chosen, id] : chosen.filter((one) => one !== id));
  return (
    <QueryView query={query}>
      {(models) => {
        const offered = models.filter(({ id }) => isAllowed(account.limits?.models, id)).map(({ id }) => id);
        // Models that are chosen may not be offered any more.
        const ids = [...offered, ...chosen.filter((id) => !offered.includes(id))];
        const shown = ids.filter((id) => id.toLowerCase().includes(wanted.trim().toLowerCase()));
        return (
          <div class="keys-models">
            <Field
              label={t('findModel')}
              type="search"
              value={wanted}
              onInput={(event) => setWanted(event.currentTarget.value)}
            />
            <div class="keys-model-list" role="group" aria-label={t('models')} tabIndex={0}>
              {shown.map((id) => (
                <Checkbox
                  key={id}
                  label={id}
                  checked={chosen.includes(id)}
                  onToggle={(isChosen) => toggle(id, isChosen)}
                />
              ))}
              {shown.length === 0 && <p class="soft small">{common('nothingFound')}</p>}
            </div>
            <p class={error === null ? 'hint' : 'field-error'} aria-live="polite">
              {error ?? t('chosenModels', { count: chosen.length })}
            </p>
          </div>
        );
      }}
    </QueryView>
  );
}
