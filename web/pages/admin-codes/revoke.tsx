import { adminApi, call, type Schema } from '../../admin/api.ts';
import { ConfirmAction } from '../../admin/confirm-action.tsx';
import { readDone, readEffects, toCall, type CallPurpose } from '../../admin/dry-run.ts';
import { useMessages } from '../../lib/language.tsx';
import { toNano } from '../../lib/nano.ts';
import { showToast } from '../../ui/toast.tsx';
import type { Code } from './code-table.tsx';
import type en from './messages.en.ts';
import { useValue } from './use-value.ts';

type RevokeEffects = Schema<'DryRunOfRevokedCodes'>['effects'];

function EffectText({ effects }: { readonly effects: RevokeEffects }) {
  const t = useMessages<typeof en>();
  const value = useValue();
  const { codes, redeemed, balance, free_requests: free } = effects;
  return (
    <>
      <p>
        {codes === 0
          ? t('nothingToRevoke')
          : t('willRevoke', { codes: t('codes', { count: codes }), value: value(toNano(balance), free) })}
      </p>
      {redeemed > 0 && <p>{t('stayRedeemed', { count: redeemed })}</p>}
    </>
  );
}

function revokeOne(id: string, purpose: CallPurpose) {
  const { query, signal } = toCall(purpose);
  const params = { path: { code_id: id }, query };
  return call(adminApi.POST('/v1/admin/codes/{code_id}/revoke', { params, signal }));
}

export function RevokeCode({ code, onClose }: { readonly code: Code; readonly onClose: () => void }) {
  const t = useMessages<typeof en>();
  return (
    <ConfirmAction
      title={t('revokeOne', { code: code.code })}
      action={t('revoke')}
      preview={(signal) => readEffects(revokeOne(code.id, signal))}
      describe={(effects) => <EffectText effects={effects} />}
      run={(given) => readDone(revokeOne(code.id, given))}
      onDone={() => {
        onClose();
        showToast(t('revoked', { count: 1 }));
      }}
      onClose={onClose}
    />
  );
}

function revokeAll(batch: string, purpose: CallPurpose) {
  const { query, signal } = toCall(purpose);
  const params = { path: { batch }, query };
  return call(adminApi.POST('/v1/admin/codes/batches/{batch}/revoke', { params, signal }));
}

export function RevokeBatch({ batch, onClose }: { readonly batch: string; readonly onClose: () => void }) {
  const t = useMessages<typeof en>();
  return (
    <ConfirmAction
      title={t('revokeBatchTitle')}
      action={t('revokeAll')}
      preview={(signal) => readEffects(revokeAll(batch, signal))}
      describe={(effects) => <EffectText effects={effects} />}
      run={(given) => readDone(revokeAll(batch, given))}
      onDone={({ codes }) => {
        onClose();
        showToast(t('revoked', { count: codes }));
      }}
      onClose={onClose}
    />
  );
}
