import type { TranslationOf } from '../../lib/messages.ts';
import type en from './messages.en.ts';

const messages: TranslationOf<typeof en> = {
  title: 'Вход',
  titleWithSignup: 'Вход или регистрация',
  intro: 'Мы пришлём код на почту. Пароль не нужен.',
  introWithSignup:
    'Мы пришлём код на почту. Пароль не нужен, а если вы у нас впервые, профиль появится сам.',
  sessionEnded: 'Сеанс завершён. Войдите, чтобы продолжить с того же места.',
  email: 'Адрес эл. почты',
  emailMissing: 'Укажите адрес эл. почты.',
  emailWrong: 'Это не похоже на адрес почты. Он выглядит так: name@example.com.',
  continue: 'Продолжить',
  acceptTerms: 'Продолжая, вы принимаете {terms}.',
  acceptBoth: 'Продолжая, вы принимаете {terms} и {privacy}.',
  terms: 'условия использования',
  privacy: 'политику конфиденциальности',
  captchaTitle: 'Небольшая проверка',
  captchaTask: 'Нажмите на эти четыре значка на картинке ниже, в том же порядке:',
  promptImage: 'Четыре значка, которые нужно найти по порядку',
  captchaPlace: 'Картинка с восемью значками. Двигайте метку стрелками и ставьте точку клавишей Enter.',
  captchaKeys:
    'С клавиатуры: стрелки двигают метку, вместе с Shift — мелкими шагами. Enter ставит точку, Backspace убирает.',
  points: 'Отмечено точек: {count} из {total}',
  undo: 'Убрать точку',
  otherPicture: 'Другая картинка',
  captchaWrong: 'Это были не те значки. Вот новая картинка.',
  captchaChecking: 'Проверяем…',
  cannotSee: 'Я не вижу картинку',
  skipHint: 'Можно продолжить и без неё. Тогда за час отправляется меньше кодов.',
  askSupport: 'Если вы не видите картинку, напишите на {email}.',
  codeTitle: 'Проверьте почту',
  codeMinutes: {
    one: 'Он действует {count} минуту.',
    few: 'Он действует {count} минуты.',
    many: 'Он действует {count} минут.',
    other: 'Он действует {count} минуты.',
  },
  codeSentTo: 'Мы отправили шестизначный код на {email}.',
  spam: 'Письма нет? Загляните в спам или запросите новый код.',
  rememberMe: 'Не выходить на этом устройстве 30 дней',
  endOthers: 'Завершить все остальные сеансы',
  endOthersHint: 'Выберите, если от вашего имени мог войти кто-то ещё.',
  submit: 'Войти',
  resend: 'Отправить код ещё раз',
  resent: 'Новый код отправлен.',
  changeEmail: 'Указать другой адрес',
};

export default messages;
