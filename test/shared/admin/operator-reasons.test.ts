import test from 'ava';
import { translateOperatorReason, writeOperatorReason } from '../../../shared/admin/operator-reasons.ts';

test('a reason is translated with its values and the reasons in it, and the words of vendors stay', (t) => {
  const cooldown = (reason: string): string => writeOperatorReason('cooldown', { seconds: 61, reason });
  for (const [text, translated] of [
    [writeOperatorReason('banned'), 'его аккаунт заблокирован'],
    [cooldown('rate limit reached'), 'ключ отложен ещё на 61 с: достигнут лимит запросов'],
    [cooldown('refused with 401 (bad: key)'), 'ключ отложен ещё на 61 с: поставщик отказал: 401 (bad: key)'],
    [`acme: ${cooldown('their words')}`, 'acme: ключ отложен ещё на 61 с: their words'],
    [
      `${writeOperatorReason('modelDisabled', { model: 'a' })}; something else`,
      'отключена оператором: model enable a; something else',
    ],
    ['something else', null],
    ['acme: something else', null],
  ] as const)
    t.is(translateOperatorReason(text), translated, text);
});
