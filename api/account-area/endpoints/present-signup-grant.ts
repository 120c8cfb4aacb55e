import type { GrantOfNewUsers } from '../../contract/web-accounts.ts';
import type { NoGrantReason } from '../../../shared/accounts/no-grant-reasons.ts';
import { formatRub } from '../../../shared/encoding/money.ts';
import type { SignupGrant } from '../../../shared/accounts/signup-grant-store.ts';

const howToGoOn = {
  en: 'The account works: add money with a refill code.',
  ru: 'Аккаунт работает: пополните баланс кодом пополнения.',
};

/** What a user is told. Says nothing about others than that they exist. */
const reasonTexts: Record<NoGrantReason, { readonly en: string; readonly ru: string }> = {
  network_limit: {
    en: `The account starts with nothing: too many new users of your network got the starting credit today. ${howToGoOn.en}`,
    ru: `Аккаунт создан без стартового бонуса: в вашей сети сегодня его получило слишком много новых пользователей. ${howToGoOn.ru}`,
  },
  disposable_email: {
    en: `The account starts with nothing: there is no starting credit for disposable email addresses. ${howToGoOn.en}`,
    ru: `Аккаунт создан без стартового бонуса: для одноразовых почтовых адресов его нет. ${howToGoOn.ru}`,
  },
  mailbox_granted: {
    en: `The account starts with nothing: another user with this mailbox has the starting credit. ${howToGoOn.en}`,
    ru: `Аккаунт создан без стартового бонуса: его получил другой пользователь с этим почтовым ящиком. ${howToGoOn.ru}`,
  },
  already_granted: {
    en: `The account starts with nothing: an earlier account of yours has the starting credit. ${howToGoOn.en}`,
    ru: `Аккаунт создан без стартового бонуса: его получил ваш прежний аккаунт. ${howToGoOn.ru}`,
  },
  not_offered: {
    en: `The account starts with nothing: this service has no starting credit. ${howToGoOn.en}`,
    ru: `Аккаунт создан без стартового бонуса: у сервиса его нет. ${howToGoOn.ru}`,
  },
};

export function presentGrant({ balanceNano, freeRequests, refusal }: SignupGrant): GrantOfNewUsers {
  const text = refusal === null ? null : reasonTexts[refusal];
  return {
    balance: formatRub(balanceNano),
    free_requests: freeRequests,
    reason: refusal,
    message_en: text?.en ?? null,
    message_ru: text?.ru ?? null,
  };
}
