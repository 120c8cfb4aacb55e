import type { ApiAccount } from '../../lib/accounts.ts';
import { isAllowed } from '../../lib/allowed-models.ts';
import { useMessages } from '../../lib/language.tsx';
import { useModels } from '../../lib/models.ts';
import { ModelChoice } from '../../ui/model-choice.tsx';
import { QueryView } from '../../ui/states.tsx';
import type en from './messages.en.ts';

/** The models that the operator allows, to choose from. */
export function AllowedModelChoice({
  account,
  ...choice
}: {
  readonly account: ApiAccount;
  readonly chosen: readonly string[];
  readonly error: string | null;
  readonly onChange: (models: readonly string[]) => void;
}) {
  const t = useMessages<typeof en>();
  const query = useModels();
  return (
    <QueryView query={query}>
      {(models) => (
        <ModelChoice
          {...choice}
          label={t('models')}
          offered={models.filter(({ id }) => isAllowed(account.limits?.models, id)).map(({ id }) => id)}
        />
      )}
    </QueryView>
  );
}
