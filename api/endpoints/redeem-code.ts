import { canBeRefillCode } from '../../shared/accounts/credentials.ts';
import { AppError, invalidField } from '../../shared/contract/errors.ts';
import type { AccountStore } from '../../shared/accounts/account-store.ts';
import { changeAccount } from '../../shared/accounts/change-account.ts';
import { creditClaim, type ClaimDeps } from '../../shared/accounts/credit-claim.ts';
import {
  findClaimOf,
  statusOfRefillCode,
  type RedemptionClaim,
  type RefillCodeDocument,
} from '../../shared/accounts/refill-code-store.ts';
import { countUnknownCode } from '../../shared/accounts/unknown-code-script.ts';
import { createTimeOrderedId } from '../../shared/platform/runtime/time-ordered-id.ts';

export interface RedeemDeps extends ClaimDeps {
  readonly accounts: AccountStore;
}

/**
 * The number of unknown codes within an hour at which an account is banned. A code has 99 random bits, so ten guesses
 * per hour would not find one in the lifetime of the universe. Codes would be safe with a higher number, too; this one
 * only has to allow for typing errors.
 */
export const maxUnknownCodes = 10;

/**
 * Redeems a code for an account that is loaded in Redis. The claim in MongoDB decides which account gets the code.
 * `finishClaims` completes a claim that was interrupted by a crash. If a caller got a 503 because MongoDB was slow to
 * confirm the claim, sending the code again credits it, unless `finishClaims` already has.
 * @param code as it was typed
 * @throws AppError `invalid_code`; `validation_failed` above the balance cap; `account_banned` for guessing
 */
export async function redeemCode(
  deps: RedeemDeps,
  accountId: string,
  code: string,
): Promise<RedemptionClaim> {
  const { codes } = deps;
  // A typing error, which is not a guess.
  if (!canBeRefillCode(code)) throw noRefillCode();
  const newClaim = await codes.claim(code, accountId, createTimeOrderedId());
  const found = newClaim === null ? await codes.find(code) : null;
  const claim = newClaim ?? (found && findClaimOf(found, accountId));
  if (claim === null) throw await rejectCode(deps, accountId, found);
  const outcome = await creditClaim(deps, claim);
  if (outcome === 'before' && newClaim === null) throw await rejectCode(deps, accountId, found);
  if (outcome === 'released') {
    throw invalidField(
      ['body', 'code'],
      'The balance cannot exceed 9 000 000 roubles. The code was not used: redeem it when your balance is lower.',
      {
        msgRu:
          'Баланс не может превышать 9 000 000 рублей. Код не использован: активируйте его, когда баланс уменьшится.',
      },
    );
  }
  return claim;
}

async function rejectCode(
  deps: RedeemDeps,
  accountId: string,
  found: RefillCodeDocument | null,
): Promise<AppError> {
  if (found === null) return await rejectUnknownCode(deps, accountId);
  const status = statusOfRefillCode(found, new Date());
  switch (status) {
    case 'redeemed':
      return found.redeemed?.accountId === accountId
        ? invalidCode(
            'This account has already redeemed this code: the amount was added to its balance.',
            'Этот аккаунт уже активировал этот код: сумма зачислена на баланс.',
          )
        : invalidCode(
            'This code has already been used. Request a new one where you got it.',
            'Этот код уже использован. Запросите другой там, где вы его получили.',
          );
    case 'expired':
      return invalidCode(
        'This code has expired. Request a new one where you got it.',
        'Срок действия этого кода истёк. Запросите другой там, где вы его получили.',
      );
    case 'revoked':
      return invalidCode(
        'This code has been revoked. Request a new one where you got it.',
        'Этот код отозван. Запросите другой там, где вы его получили.',
      );
    case 'unused':
      // Its claim was released after the lookup.
      return new AppError('service_unavailable', { message: 'a code was released while it was claimed' });
    default:
      return status satisfies never;
  }
}

async function rejectUnknownCode(deps: RedeemDeps, accountId: string): Promise<AppError> {
  if ((await countUnknownCode(deps.redis, accountId)) < maxUnknownCodes) {
    return invalidCode(
      'This code does not exist. Check it for typos: accounts that guess codes are banned.',
      'Такого кода нет. Проверьте, нет ли опечаток: за подбор кодов аккаунт блокируется.',
    );
  }
  await changeAccount(deps, accountId, { banned: true, banReason: 'guessed refill codes' });
  return new AppError('account_banned', {
    message: 'This account is banned: too many codes that do not exist were entered. Contact support.',
    messageRu: 'Аккаунт заблокирован: введено слишком много несуществующих кодов. Обратитесь в поддержку.',
  });
}

const noRefillCode = (): AppError =>
  invalidCode(
    'A code consists of 20 letters and digits, such as 7KQM-2WXY-9ABC-DEFG-HJKM, and never contains 0, 1, I, L or O. Check it for typos.',
    'Код состоит из 20 латинских букв и цифр, например 7KQM-2WXY-9ABC-DEFG-HJKM, и не содержит 0, 1, I, L и O. Проверьте, нет ли опечаток.',
  );

const invalidCode = (message: string, messageRu: string): AppError =>
  invalidField(['body', 'code'], message, { code: 'invalid_code', type: 'invalid_code', msgRu: messageRu });
