import type { GrantOfNewUsers } from '../../contract/web-accounts.ts';
import type { NoGrantReason } from '../../../shared/accounts/no-grant-reasons.ts';
import { formatRub } from '../../../shared/encoding/money.ts';
import type { SignupGrant } from '../../../shared/accounts/signup-grant-store.ts';

const howToGoOn = {
  en: 'To start using it, add funds with a refill code.',
  ru: 'Чтобы начать работу, пополните баланс кодом пополнения.',
};

/** What a user is told. Says nothing about others than that they exist. */
const reasonTexts: Record<NoGrantReason, { readonly en: string; readonly ru: string }> = {
  network_limit: {
    en: `The account was created without starting credit: too many new users on your network received it today. ${howToGoOn.en}`,
    ru: `Аккаунт создан без стартового бонуса: в вашей сети сегодня его получило слишком много новых пользователей. ${howToGoOn.ru}`,
  },
  disposable_email: {
    en: `The account was created without starting credit: it is not available for disposable email addresses. ${howToGoOn.en}`,
    ru: `Аккаунт создан без стартового бонуса: для одноразовых почтовых адресов он не предоставляется. ${howToGoOn.ru}`,
  },
  mailbox_granted: {
    en: `The account was created without starting credit: another user with this mailbox has already received it. ${howToGoOn.en}`,
    ru: `Аккаунт создан без стартового бонуса: его уже получил другой пользователь с этим почтовым ящиком. ${howToGoOn.ru}`,
  },
  already_granted: {
    en: `The account was created without starting credit: your previous account has already received it. ${howToGoOn.en}`,
    ru: `Аккаунт создан без стартового бонуса: его уже получил ваш прежний аккаунт. ${howToGoOn.ru}`,
  },
  not_offered: {
    en: `The account was created without starting credit: this service does not offer it. ${howToGoOn.en}`,
    ru: `Аккаунт создан без стартового бонуса: сервис его не предоставляет. ${howToGoOn.ru}`,
  },
};

export function presentGrant({ balanceNano, freeRequests, denialReason }: SignupGrant): GrantOfNewUsers {
  const text = denialReason === null ? null : reasonTexts[denialReason];
  return {
    balance: formatRub(balanceNano),
    free_requests: freeRequests,
    reason: denialReason,
    message_en: text?.en ?? null,
    message_ru: text?.ru ?? null,
  };
}
