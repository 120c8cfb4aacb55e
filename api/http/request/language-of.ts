import type { MailLanguage } from '../../../shared/account-area/mail.ts';
import type { ApiContext } from './context.ts';

/** No browser sends more, and parsing long ones is slow. */
const maxAcceptLanguageLength = 300;

/** The language of mails and pages for the caller: Russian unless the browser prefers English. */
export function languageOf(context: ApiContext): MailLanguage {
  if (context.get('accept-language').length > maxAcceptLanguageLength) return 'ru';
  return context.acceptsLanguages('ru', 'en') === 'en' ? 'en' : 'ru';
}
