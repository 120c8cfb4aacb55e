// decision 0096
import { AppError, retryAfter } from '../../shared/contract/errors.ts';
import { formatRub } from '../../shared/encoding/money.ts';
import type { BudgetPeriod } from '../../shared/accounts/budget-periods.ts';
import type { BudgetState, RestrictionState, TokenLimit } from '../../shared/money/restrictions.ts';

const russianPeriods: Readonly<Record<BudgetPeriod, string>> = {
  daily: 'Дневной',
  weekly: 'Недельный',
  monthly: 'Месячный',
};

/** In RFC 3339, without the milliseconds, which are always zero. */
const formatTime = (time: Date): string => time.toISOString().replace('.000Z', 'Z');

/** @param neededNano what the request may cost; null if that is not known yet */
export function budgetExceeded(budget: BudgetState, neededNano: bigint | null): AppError {
  const { amountNano, leftNano, period, resetsAt, isOwners } = budget;
  const [amount, left, reset] = [formatRub(amountNano), formatRub(leftNano), formatTime(resetsAt)];
  const needed = neededNano === null ? '' : `This request may cost up to ${formatRub(neededNano)} RUB. `;
  const neededRu = neededNano === null ? '' : `Запрос может стоить до ${formatRub(neededNano)} RUB. `;
  return new AppError('budget_exceeded', {
    message:
      `${needed}The ${period} budget of this account, ${amount} RUB, has ${left} RUB left, and resets at ${reset}. ` +
      (isOwners
        ? 'Raise it in the account’s settings, or send a smaller request.'
        : 'Ask the operator to raise it, or send a smaller request.'),
    messageRu:
      `${neededRu}${russianPeriods[period]} бюджет аккаунта — ${amount} RUB, осталось ${left} RUB; он обновится ${reset}. ` +
      (isOwners
        ? 'Увеличьте его в настройках аккаунта или уменьшите запрос.'
        : 'Попросите оператора увеличить его или уменьшите запрос.'),
    headers: {
      ...describeBudget(budget),
      'retry-after': String(Math.max(1, Math.ceil((resetsAt.getTime() - Date.now()) / 1_000))),
    },
  });
}

export const modelNotAllowed = (model: string): AppError =>
  new AppError('model_not_allowed', {
    message: `This account may not use the model ${model}. Choose one of those that GET /v1/users/profile lists.`,
    messageRu: `Этот аккаунт не может использовать модель ${model}. Выберите одну из тех, которые перечисляет GET /v1/users/profile.`,
  });

/** @param address of the caller; '' if it is not known */
export const addressNotAllowed = (address: string): AppError =>
  new AppError('address_not_allowed', {
    message: `This API key may not be used from ${address === '' ? 'this address' : `the address ${address}`}. Ask whoever manages the account to allow it.`,
    messageRu: `Этот API-ключ нельзя использовать с ${address === '' ? 'этого адреса' : `адреса ${address}`}. Обратитесь к тому, кто управляет аккаунтом, чтобы его разрешили.`,
  });

export const keyExpired = (expiredAt: Date): AppError =>
  new AppError('key_expired', {
    message: `This API key expired at ${formatTime(expiredAt)}. Ask whoever manages the account to extend it.`,
    messageRu: `Срок действия этого API-ключа истёк ${formatTime(expiredAt)}. Обратитесь к тому, кто управляет аккаунтом, чтобы его продлили.`,
  });

export function tokensLimited(tokens: TokenLimit): AppError {
  const headers = retryAfter(tokens.retryAfterMs);
  return new AppError('rate_limit_exceeded', {
    message: `The limit of ${tokens.limit} tokens per minute has been reached. Try again in ${headers['retry-after']} s.`,
    messageRu: `Достигнут лимит в ${tokens.limit} токенов в минуту. Повторите через ${headers['retry-after']} с.`,
    headers: { ...describeTokens(tokens), ...headers },
  });
}

/** The headers that tell callers how much they may still use. */
export const describeRestrictions = ({ budget, tokens }: RestrictionState): Record<string, string> => ({
  ...(budget !== null && describeBudget(budget)),
  ...(tokens !== null && describeTokens(tokens)),
});

const describeBudget = ({ amountNano, leftNano, resetsAt }: BudgetState): Record<string, string> => ({
  'x-budget-limit': formatRub(amountNano),
  'x-budget-remaining': formatRub(leftNano),
  'x-budget-reset': formatTime(resetsAt),
});

const describeTokens = ({ limit, remaining, resetSeconds }: TokenLimit): Record<string, string> => ({
  'x-ratelimit-limit-tokens': String(limit),
  'x-ratelimit-remaining-tokens': String(remaining),
  'x-ratelimit-reset-tokens': formatReset(resetSeconds),
});

/** In OpenAI's format: `1s`, `59s`, `1m0s`. */
export function formatReset(seconds: number): string {
  const minutes = Math.floor(seconds / 60);
  return minutes > 0 ? `${minutes}m${seconds % 60}s` : `${seconds}s`;
}
