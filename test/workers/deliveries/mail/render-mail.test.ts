import test from 'ava';
import { renderMail, type RenderContext } from '../../../../workers/deliveries/mail/render-mail.ts';
import type { NoticeEvent } from '../../../../shared/account-area/mail.ts';
import { createConfirmationMail, createNotice, createSignInMail } from '../../../support/mails.ts';

const now = Date.UTC(2026, 10, 23, 12, 0, 0);
const expiresAt = now + 598_000;
const context: RenderContext = {
  service: 'Test Gateway',
  supportEmail: 'support@gateway.example',
  isSignUpOpen: true,
  isKnown: true,
  now,
};
const languages = ['ru', 'en'] as const;

const count = (text: string, part: string): number => text.split(part).length - 1;

test('in both languages a code appears once in the text and in the HTML, with its validity, and not in the subject', (t) => {
  const validity = { ru: '10 минут.', en: '10 minutes, for one use.' };
  for (const language of languages)
    for (const mail of [
      createSignInMail({ expiresAt, language }),
      createSignInMail({ expiresAt, language, purpose: 'signup' }),
      ...(['unlink', 'reveal', 'regenerate'] as const).map((action) =>
        createConfirmationMail({ expiresAt, language, action }),
      ),
    ]) {
      const { subject, text, html } = renderMail(mail, context);
      t.is(count(text, mail.code), 1);
      t.is(count(html, mail.code), 1);
      t.false(subject.includes(mail.code));
      for (const part of [text, html]) t.true(part.includes(validity[language]), part);
      t.regex(html, new RegExp(`<html lang="${language}">`));
      t.is(/[а-яё]/i.test(subject), language === 'ru');
    }
});

test('a code is sent to users and to strangers who may sign up; strangers who try to sign in get a mail without a code', (t) => {
  const cases = [
    { purpose: 'login', isKnown: true, isSignUpOpen: false, hasCode: true },
    { purpose: 'signup', isKnown: true, isSignUpOpen: false, hasCode: true },
    { purpose: 'signup', isKnown: false, isSignUpOpen: true, hasCode: true },
    { purpose: 'signup', isKnown: false, isSignUpOpen: false, hasCode: false },
    { purpose: 'login', isKnown: false, isSignUpOpen: true, hasCode: false },
    { purpose: 'login', isKnown: false, isSignUpOpen: false, hasCode: false },
  ] as const;
  for (const language of languages)
    for (const { purpose, hasCode, ...more } of cases) {
      const mail = createSignInMail({ purpose, language, expiresAt });
      const { text, html } = renderMail(mail, { ...context, ...more });
      const title = JSON.stringify({ purpose, language, ...more });
      t.is(text.includes(mail.code) && html.includes(mail.code), hasCode, title);
      t.is(text.includes(mail.email), !hasCode, title);
      // Here “account” means an API account. An address without a user has no profile, so the mail says “profile”.
      t.is(/profile|Профиля/.test(text), !hasCode, title);
      if (!hasCode) t.notRegex(text, /account|аккаунт/i);
      if (!hasCode) t.is(/Sign up|Регистрация/.test(text), more.isSignUpOpen, title);
    }
});

test('a mail states who requested it, if known, and what to do if it was somebody else', (t) => {
  for (const language of languages) {
    const known = renderMail(
      createSignInMail({ language, expiresAt, address: '203.0.113.7', device: 'Firefox on Linux' }),
      context,
    );
    for (const part of [known.text, known.html]) {
      t.true(part.includes('203.0.113.7') && part.includes('Firefox on Linux'));
      t.regex(part, { ru: /Запрошено с адреса/, en: /Requested from/ }[language]);
      t.true(part.includes('support@gateway.example'));
    }
    const unknown = renderMail(createSignInMail({ language, expiresAt }), { ...context, supportEmail: null });
    for (const part of [unknown.text, unknown.html]) t.notRegex(part, /null|undefined|203\.0|support@/);
  }
});

test('each notice states what happened, the account and the time, in both languages', (t) => {
  const events = [
    'account-linked',
    'account-unlinked',
    'key-revealed',
    'key-regenerated',
    'sessions-ended',
    'first-account',
  ] as const;
  for (const language of languages) {
    const mails = events.map((event) => renderMail(createNotice({ event, language, at: now }), context));
    t.is(new Set(mails.map(({ subject }) => subject)).size, events.length);
    for (const [i, { text }] of mails.entries()) {
      t.is(text.includes('Main'), events[i] !== 'sessions-ended');
      t.true(text.includes('12:00') && text.includes('UTC') && text.includes('2026'));
    }
    const ended = renderMail(
      createNotice({ event: 'sessions-ended', accountLabel: null, language }),
      context,
    );
    t.notRegex(ended.text, /null|“”|«»/);
  }
});

test('a notice states who acted (support, someone with a copied cookie or the signed-in user), and gives suitable advice', (t) => {
  const read = (event: NoticeEvent, language: 'ru' | 'en') =>
    renderMail(createNotice({ event, language }), context).text;
  const intruder = { ru: /кто-то мог войти от вашего имени/, en: /someone else may be signed in as you/ };
  const expected = [
    [
      'account-unlinked',
      { ru: /вернуть аккаунт, привяжите/, en: /get the account back, link it again/ },
      true,
    ],
    ['account-unlinked-by-support', { ru: /Поддержка отвязала/, en: /Support unlinked/ }, false],
    ['sessions-ended', { ru: /в двух местах/, en: /in use in two places/ }, false],
  ] as const;
  for (const language of languages)
    for (const [event, words, warnsOfIntruder] of expected) {
      const text = read(event, language);
      t.regex(text, words[language]);
      t.is(intruder[language].test(text), warnsOfIntruder, event);
    }
});

test('a Russian mail never breaks the term for an API key across lines', (t) => {
  for (const action of ['unlink', 'reveal', 'regenerate'] as const) {
    const { text, html } = renderMail(createConfirmationMail({ action, language: 'ru', expiresAt }), context);
    for (const part of [text, html]) {
      t.true(part.includes('API\u2011ключ'));
      t.false(part.includes('API-ключ'));
    }
  }
});

test('the word for minutes agrees with the number of minutes', (t) => {
  const renderMinutes = (language: 'ru' | 'en', minutes: number): string =>
    renderMail(createSignInMail({ language, expiresAt: now + minutes * 60_000 }), context).text;
  t.true(renderMinutes('ru', 1).includes('1 минуту'));
  t.true(renderMinutes('ru', 3).includes('3 минуты'));
  t.true(renderMinutes('ru', 5).includes('5 минут.'));
  t.true(renderMinutes('en', 1).includes('1 minute,'));
  t.true(renderMinutes('en', 0).includes('1 minute,'));
});

test('an account label cannot add a link or a long sentence to a mail', (t) => {
  const labels = {
    'Key leaked! Confirm at https://eve.example/now': 'Key leaked! Confirm at …',
    'call www.eve.example, or eve.example/x': 'call … or …',
    'write to eve@example.com': 'write to …',
    'Отдел 2.0 (тест)': 'Отдел 2.0 (тест)',
    [`Support: ${'your key is known to others, '.repeat(2)}`]: 'Support: your key is known to others, yo…',
  };
  for (const [accountLabel, name] of Object.entries(labels)) {
    const { text } = renderMail(createNotice({ accountLabel }), context);
    t.true(text.includes(`“${name}”`), `${name}: ${text}`);
  }
});

test('an account label cannot break a line, inject HTML or make a mail long', (t) => {
  const accountLabel = `a\r\nBcc: eve@example.com\u2028<img src=x onerror="alert(1)">${'x'.repeat(5_000)}`;
  const { subject, text, html } = renderMail(createNotice({ accountLabel }), context);
  t.notRegex(subject, /\p{Cc}/u);
  t.notRegex(text, /^Bcc:/m);
  t.notRegex(text, /[\r\u2028]/);
  t.false(html.includes('<img'));
  t.true(html.includes('&lt;img'));
  t.true(text.length < 2_000);
});

test('the HTML loads nothing and contains no links', (t) => {
  for (const mail of [createSignInMail({ expiresAt }), createNotice()])
    t.notRegex(renderMail(mail, context).html, /https?:|<img|<link|<a |url\(|<script|src=/i);
});
