import { useState } from 'preact/hooks';
import { adminApi, call, type Schema } from '../../admin/api.ts';
import { ConfirmAction } from '../../admin/confirm-action.tsx';
import { readEffects, toCall, type CallPurpose } from '../../admin/dry-run.ts';
import { QuickAction } from '../../admin/quick-action.tsx';
import { useMessages } from '../../lib/language.tsx';
import { Button } from '../../ui/button.tsx';
import { showToast } from '../../ui/toast.tsx';
import type en from './messages.en.ts';
import type { AdminModel } from './read-catalog.ts';
import { TestModel } from './test-model.tsx';
import { WorkOfModels } from './work-of-models.tsx';

function setActive(id: string, active: boolean, purpose: CallPurpose) {
  const { query, signal } = toCall(purpose);
  const params = { path: { model_id: id }, query };
  return call(adminApi.PATCH('/v1/admin/models/{model_id}', { params, body: { active }, signal }));
}

export function ModelActions({ model }: { readonly model: AdminModel }) {
  const t = useMessages<typeof en>();
  const [opened, setOpened] = useState<'disable' | 'test' | null>(null);
  const close = (): void => setOpened(null);
  const { id } = model;
  return (
    <div class="admin-models-actions">
      {model.disabled && (
        <QuickAction
          kind="primary"
          run={() => setActive(id, true, {})}
          done={t('enabledDone', { model: id })}
        >
          {t('enable')}
        </QuickAction>
      )}
      {model.routes.length > 0 && <Button onClick={() => setOpened('test')}>{t('test')}</Button>}
      {!model.disabled && <Button onClick={() => setOpened('disable')}>{t('disable')}</Button>}
      {opened === 'disable' && <DisableModel model={model} onClose={close} />}
      {opened === 'test' && <TestModel model={model} onClose={close} />}
    </div>
  );
}

function DisableModel({
  model: { id },
  onClose,
}: {
  readonly model: AdminModel;
  readonly onClose: () => void;
}) {
  const t = useMessages<typeof en>();
  return (
    <ConfirmAction
      title={t('disableTitle', { model: id })}
      action={t('disableAction')}
      preview={(signal) => readEffects(setActive(id, false, signal))}
      describe={(effects) => <DisableEffects effects={effects} />}
      run={(given) => setActive(id, false, given)}
      onDone={() => {
        showToast(t('disabledDone', { model: id }));
        onClose();
      }}
      onClose={onClose}
    />
  );
}

function DisableEffects({ effects }: { readonly effects: Schema<'DryRunOfModelUpdate'>['effects'] }) {
  const t = useMessages<typeof en>();
  const { is_changed: isChanged, requests_last_hour: lastHour } = effects;
  if (!isChanged) return <p>{t('unchanged')}</p>;
  return (
    <>
      <p>{t.nodes('disableText', { code: <code>model_disabled</code> })}</p>
      {lastHour !== null && <p>{t('lastHour', { count: lastHour })}</p>}
      <WorkOfModels work={effects} />
    </>
  );
}
