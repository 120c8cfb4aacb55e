import type { MailTexts } from './mail-texts.ts';

const time = new Intl.DateTimeFormat('ru', { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' });
const plural = new Intl.PluralRules('ru');
const minuteForms: Record<string, string> = { one: 'минуту', few: 'минуты' };

const ignore = 'Если вы не запрашивали код, просто удалите это письмо: без кода никто не войдёт.';
const intruder =
  'Если это были не вы, кто-то мог войти от вашего имени: войдите, завершите все остальные сессии и замените API‑ключи своих аккаунтов.';
const nothingToDo = `Если это были вы, делать ничего не нужно. ${intruder}`;

export const textsRu: MailTexts = {
  signIn: (signInCase, service) => ({
    subject: signInCase === 'signup' ? `Код регистрации в ${service}` : `Код для входа в ${service}`,
    heading: signInCase === 'signup' ? `Добро пожаловать в ${service}` : `Вход в ${service}`,
    lead: {
      login: 'Введите этот код на странице, где вы его запросили:',
      signup: 'Введите этот код, чтобы подтвердить адрес и завершить регистрацию:',
      'signup-of-known': 'Вы уже зарегистрированы с этим адресом. Введите этот код, чтобы войти:',
    }[signInCase],
    advice: ignore,
  }),
  noProfile: (email, service, isSignUpOpen) => ({
    subject: `В ${service} нет профиля с этим адресом`,
    heading: 'Профиля с этим адресом нет',
    lead:
      `Кто-то запросил код для входа в ${service} с адресом ${email}, но этот адрес не зарегистрирован. ` +
      (isSignUpOpen
        ? 'Чтобы зарегистрироваться, выберите «Регистрация» на странице входа и снова укажите этот адрес.'
        : 'Если у вас есть профиль, войдите с адресом, который вы указали при регистрации. Зарегистрироваться сейчас нельзя.'),
    advice: 'Если это были не вы, просто удалите это письмо. Ничего не было создано или изменено.',
  }),
  confirmation: (action, label) => ({
    subject: {
      unlink: 'Код для отвязки аккаунта',
      reveal: 'Код для просмотра API‑ключа',
      regenerate: 'Код для замены API‑ключа',
    }[action],
    heading: { unlink: 'Отвязка аккаунта', reveal: 'Показ API‑ключа', regenerate: 'Замена API‑ключа' }[
      action
    ],
    lead: {
      unlink: `API‑ключ продолжит работать. Чтобы отвязать аккаунт «${label}» от профиля, введите код:`,
      reveal: `Введите этот код, чтобы увидеть API‑ключ аккаунта «${label}»:`,
      regenerate: `Текущий API‑ключ сразу перестанет работать. Чтобы заменить API‑ключ аккаунта «${label}», введите код:`,
    }[action],
    advice: intruder,
  }),
  notice: (event, label, service) => {
    const [heading, lead, advice = nothingToDo] = {
      'account-linked': ['Аккаунт привязан', `Аккаунт «${label}» привязан к вашему профилю.`],
      'account-unlinked': [
        'Аккаунт отвязан',
        `Аккаунт «${label}» отвязан от вашего профиля. Его API‑ключ продолжает работать.`,
        `${nothingToDo} Чтобы вернуть аккаунт, привяжите его снова по ключу или обратитесь в поддержку.`,
      ],
      'account-unlinked-by-support': [
        'Аккаунт отвязан',
        `Поддержка отвязала аккаунт «${label}» от вашего профиля. Его API‑ключ продолжает работать.`,
        'Если вы этого не ожидали, обратитесь в поддержку.',
      ],
      'key-revealed': ['API‑ключ показан', `API‑ключ аккаунта «${label}» был показан целиком.`],
      'key-regenerated': [
        'API‑ключ заменён',
        `API‑ключ аккаунта «${label}» заменён. Прежний ключ больше не работает.`,
      ],
      'sessions-ended': [
        'Сессия завершена из соображений безопасности',
        'Сессия вашего профиля завершена: похоже, ею пользовались сразу в двух местах. Возможно, это ошибка страницы или кто-то скопировал ваши cookie.',
        'Если адрес выше вам незнаком, войдите, завершите все остальные сессии и замените API‑ключи своих аккаунтов.',
      ],
      'first-account': ['Ваш аккаунт готов', `В ${service} для вас открыт аккаунт «${label}».`],
    }[event] as [string, string, string?];
    return { subject: heading, heading, lead, advice };
  },
  validity: (minutes) =>
    `Код одноразовый и действует ${minutes} ${minuteForms[plural.select(minutes)] ?? 'минут'}.`,
  uncertain: 'Мы не смогли подтвердить, что действие завершилось. Проверьте свои аккаунты.',
  neverShare: 'Никому не сообщайте этот код. Мы никогда его не спрашиваем.',
  when: 'Когда',
  address: 'IP-адрес',
  requestedFrom: 'Запрошено с адреса',
  device: 'Устройство',
  formatTime: (at) => `${time.format(at)} (UTC)`,
  sentBy: (service) => `Это письмо отправлено автоматически: ${service}.`,
  support: (email) => `Есть вопросы? Напишите на ${email}.`,
};
