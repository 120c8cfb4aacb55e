import type { TranslationOf } from '../lib/messages.ts';
import type en from './cost-texts.en.ts';

const texts: TranslationOf<typeof en> = {
  cost: 'Стоимость',
  part: 'Часть',
  quantity: 'Количество',
  rate: 'Цена',
  amount: 'Сумма',
  times: '{quantity} × {rate}',
  perMillion: '{price} за миллион',
  part_prompt: 'Входные токены',
  part_cached_prompt: 'Входные токены из кеша',
  part_cache_write: 'Входные токены, записанные в кеш',
  part_completion: 'Выходные токены',
  part_image: 'Изображения',
  part_second: 'Секунды',
  part_characters: 'Символы',
  part_request: 'Запросы',
  rounding: 'Округление',
  paidByFreeRequest: 'Оплачено бесплатным запросом',
  beyondBalance: 'Сверх баланса, не списано',
  notCharged: 'Запрос завершился ошибкой, деньги не списаны.',
  nothingCharged: 'Деньги не списаны.',
  noRates: 'Подробностей нет: пакет оплачивается построчно, а давние цены могли не сохраниться.',
  estimatedText: 'Токены посчитал шлюз: поставщик их не сообщил.',
  total: 'Итого',
};

export default texts;
