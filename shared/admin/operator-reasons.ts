import { fill, findFilled, type ReasonText, type ValuesOf } from '../contract/reasons.ts';

/**
 * Why something is not called, served or done, as the admin API and the command say it, and in Russian for the
 * console. A `{reason}` is another text, which may be one of these or the vendor's own.
 */
const operatorReasons = {
  modelDisabled: {
    en: 'disabled by an operator: model enable {model}',
    ru: 'отключена оператором: model enable {model}',
  },
  modelOfRouteDisabled: {
    en: 'the model is disabled by an operator: model enable {model}',
    ru: 'модель отключена оператором: model enable {model}',
  },
  routeDrained: {
    en: 'it is drained by an operator: upstream undrain {upstream}',
    ru: 'выведен из работы оператором: upstream undrain {upstream}',
  },
  allRoutesDrained: {
    en: 'all of its routes are drained: upstream undrain',
    ru: 'все её маршруты выведены из работы: upstream undrain',
  },
  breakerOpen: {
    en: 'its breaker is open for {seconds} s after failed calls',
    ru: 'предохранитель разомкнут ещё {seconds} с после неудачных вызовов',
  },
  cooldown: {
    en: 'its key is on cooldown for {seconds} s: {reason}',
    ru: 'ключ отложен ещё на {seconds} с: {reason}',
  },
  refusedAccounts: {
    en: 'for the accounts whose calls were refused: {reason}',
    ru: 'для аккаунтов, чьи вызовы отклонены: {reason}',
  },
  rateLimited: { en: 'rate limit reached', ru: 'достигнут лимит запросов' },
  refusedWith: { en: 'refused with {status}', ru: 'поставщик отказал: {status}' },
  unsetInShell: { en: '{variable} is not set in this shell', ru: '{variable} не задана в этом терминале' },
  unsetInApi: { en: '{variable} is not set in the api process', ru: '{variable} не задана в процессе api' },
  unusableKey: {
    en: '{variable} does not contain a usable key in the api process',
    ru: 'в {variable} процесса api нет пригодного ключа',
  },
  unusableHeader: {
    en: '{variable} is not a usable header in the api process',
    ru: '{variable} процесса api не годится как заголовок',
  },
  notFailed: { en: 'it has not failed', ru: 'завершилось без ошибки' },
  retried: { en: 'it was retried before', ru: 'его уже повторяли' },
  charged: {
    en: 'it failed after output, which was charged',
    ru: 'прервалось посреди ответа, который уже оплачен',
  },
  sentAgain: {
    en: 'its caller has sent it again under its Idempotency-Key',
    ru: 'клиент сам отправил его ещё раз с тем же Idempotency-Key',
  },
  notKept: {
    en: 'its request is not stored, because it was large, or because very many jobs of its account failed',
    ru: 'его запрос не сохранён: он был велик, или у аккаунта очень много заданий с ошибкой',
  },
  neverSucceeds: {
    en: 'it failed with {code}, which a retry does not fix',
    ru: 'закончилось с {code}: повтор этого не исправит',
  },
  notLoaded: { en: 'its account could not be loaded', ru: 'не удалось загрузить его аккаунт' },
  banned: { en: 'its account is banned', ru: 'его аккаунт заблокирован' },
  keyExpired: { en: 'the key of its account has expired', ru: 'срок ключа его аккаунта истёк' },
  modelRefused: { en: 'its account may not use its model', ru: 'его аккаунту эта модель не разрешена' },
  insufficient: {
    en: 'the balance of its account is too low',
    ru: 'на балансе его аккаунта не хватает денег',
  },
  overBudget: { en: 'the budget of its account is used up', ru: 'бюджет его аккаунта исчерпан' },
  // Why an entry of the ledger could not be read: parseLedgerEntry
  unreadBeginning: {
    en: 'it does not begin with its kind and its account',
    ru: 'она не начинается с вида и аккаунта',
  },
  otherShard: { en: 'its account belongs to another shard', ru: 'её аккаунт из другого шарда' },
  unreadKind: { en: 'kind is {value}', ru: 'неизвестный вид записи: {value}' },
  unreadCost: { en: 'cost is {value}', ru: 'стоимость не число: {value}' },
  unreadShortfall: { en: 'shortfall is {value}', ru: 'недостача не число: {value}' },
  unreadAmount: { en: 'amount is {value}', ru: 'сумма не число: {value}' },
  unreadFree: { en: 'free is {value}', ru: 'признак бесплатного запроса не читается: {value}' },
  unreadOrdinal: { en: 'ordinal is {value}', ru: 'порядковый номер не число: {value}' },
  eventNoObject: { en: 'its event is not a JSON object', ru: 'её событие не объект JSON' },
  eventVersion: { en: 'its event has version {version}', ru: 'её событие версии {version}' },
  eventOther: { en: 'its event has a different {field}', ru: 'в её событии другой {field}' },
  eventInvalid: { en: 'its event has an invalid {field}', ru: 'в её событии негодное поле {field}' },
  other: { en: 'another reason', ru: 'другая причина' },
} as const satisfies Readonly<Record<string, ReasonText>>;
type Reasons = typeof operatorReasons;

/** Writes a reason in English, as the API and the command do. */
export const writeOperatorReason = <Key extends keyof Reasons>(
  key: Key,
  ...[values]: ValuesOf<Reasons[Key]>
): string => fill(operatorReasons[key].en, values ?? {});

/** A reason may contain another one, which may contain another one. */
const maxDepth = 4;

/** Translates a reason, or several with semicolons between them. Null if none of it is known. */
export function translateOperatorReason(text: string): string | null {
  const parts = text.split('; ');
  const translated = parts.map((part) => translatePart(part, maxDepth));
  if (translated.every((part) => part === null)) return null;
  return translated.map((part, i) => part ?? parts[i]).join('; ');
}

/** The name of an upstream may stand before it. */
function translatePart(text: string, depth: number): string | null {
  const whole = translateWhole(text, depth);
  const colon = text.indexOf(': ');
  if (whole !== null || colon < 0) return whole;
  const rest = translateWhole(text.slice(colon + 2), depth);
  return rest === null ? null : `${text.slice(0, colon)}: ${rest}`;
}

function translateWhole(text: string, depth: number): string | null {
  const found = depth === 0 ? null : findFilled(operatorReasons, text);
  if (found === null) return null;
  const { ru, values } = found;
  const { reason } = values;
  return fill(
    ru,
    reason === undefined ? values : { ...values, reason: translateWhole(reason, depth - 1) ?? reason },
  );
}
