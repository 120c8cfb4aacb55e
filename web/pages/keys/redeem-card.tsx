import { useMutation } from '@tanstack/preact-query';
import type { ApiAccount } from '../../lib/accounts.ts';
import { api, call } from '../../lib/api.ts';
import { describeError } from '../../lib/api-error.ts';
import { useDraft } from '../../lib/draft.ts';
import { useLanguage, useMessages } from '../../lib/language.tsx';
import { config } from '../../lib/page-facts.ts';
import { queryClient } from '../../lib/queries.ts';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { Field } from '../../ui/field.tsx';
import { noteChange } from './account-changes.ts';
import { useGift } from './gift.ts';
import type en from './messages.en.ts';
import { refillsKey } from './refills-card.tsx';

export function RedeemCard({ account }: { readonly account: ApiAccount }) {
  const t = useMessages<typeof en>();
  const language = useLanguage();
  const describeGift = useGift();
  const [code, setCode] = useDraft(`redeem ${account.id}`, '');
  const redeem = useMutation({
    mutationFn: () =>
      call(
        api.POST('/v1/web/api-accounts/{account_id}/redeem', {
          params: { path: { account_id: account.id } },
          body: { code: code.trim() },
        }),
      ),
    onSuccess: async ({ balance, total_balance_added, free_requests }) => {
      setCode('');
      noteChange(account.id, { balance, total_balance_added, free_requests });
      await queryClient.invalidateQueries({ queryKey: [refillsKey, account.id] });
    },
  });
  const support = config.support_email;
  return (
    <Card title={t('redeem')}>
      <form
        class="keys-redeem"
        autoComplete="off"
        onSubmit={(event) => {
          event.preventDefault();
          if (code.trim() !== '' && !redeem.isPending) redeem.mutate();
        }}
      >
        <Field
          label={t('refillCode')}
          hint={t('refillCodeHint')}
          class="keys-code"
          value={code}
          maxLength={256}
          spellcheck={false}
          autoCapitalize="characters"
          disabled={account.ban}
          error={redeem.error === null ? null : describeError(redeem.error, language)}
          onInput={(event) => {
            setCode(event.currentTarget.value);
            redeem.reset();
          }}
        />
        <div class="keys-redeem-end">
          <Button kind="primary" type="submit" busy={redeem.isPending} disabled={code.trim() === ''}>
            {t('redeemButton')}
          </Button>
          <p class="keys-redeemed" role="status">
            {redeem.data === undefined
              ? null
              : t('redeemed', {
                  added: describeGift(redeem.data.balance_added, redeem.data.free_requests_added),
                })}
          </p>
        </div>
      </form>
      {support !== null && (
        <p class="small soft">{t.nodes('noCode', { email: <a href={`mailto:${support}`}>{support}</a> })}</p>
      )}
    </Card>
  );
}
