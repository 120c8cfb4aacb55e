import { adminApi, call, type Schema } from '../../admin/api.ts';
import { ConfirmAction } from '../../admin/confirm-action.tsx';
import { readDone, readEffects } from '../../admin/dry-run.ts';
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

const revokeOne = (id: string, query: { dry_run?: boolean }, signal: AbortSignal | null = null) =>
  call(
    adminApi.POST('/v1/admin/codes/{code_id}/revoke', {
      params: { path: { code_id: id }, query },
      signal,
    }),
  );

export function RevokeCode({ code, onClose }: { readonly code: Code; readonly onClose: () => void }) {
  const t = useMessages<typeof en>();
  return (
    <ConfirmAction
      title={t('revokeOne', { code: code.code })}
      action={t('revoke')}
      preview={(signal) => readEffects(revokeOne(code.id, { dry_run: true }, signal))}
      describe={(effects) => <EffectText effects={effects} />}
      run={() => readDone(revokeOne(code.id, {}))}
      onDone={() => {
        onClose();
        showToast(t('revoked', { count: 1 }));
      }}
      onClose={onClose}
    />
  );
}

const revokeAll = (batch: string, query: { dry_run?: boolean }, signal: AbortSignal | null = null) =>
  call(
    adminApi.POST('/v1/admin/codes/batches/{batch}/revoke', { params: { path: { batch }, query }, signal }),
  );

export function RevokeBatch({ batch, onClose }: { readonly batch: string; readonly onClose: () => void }) {
  const t = useMessages<typeof en>();
  return (
    <ConfirmAction
      title={t('revokeBatchTitle')}
      action={t('revokeAll')}
      preview={(signal) => readEffects(revokeAll(batch, { dry_run: true }, signal))}
      describe={(effects) => <EffectText effects={effects} />}
      run={() => readDone(revokeAll(batch, {}))}
      onDone={({ codes }) => {
        onClose();
        showToast(t('revoked', { count: codes }));
      }}
      onClose={onClose}
    />
  );
}
