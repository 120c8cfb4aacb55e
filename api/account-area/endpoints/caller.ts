import type { MailLanguage, MailOrigin } from '../../../shared/account-area/mail.ts';
import {
  describeUserAgent,
  formatDevice,
  type DeviceDescription,
} from '../../../shared/account-area/user-agent.ts';
import type { ApiContext } from '../../http/request/context.ts';

/** No browser sends more, and parsing long ones is slow. */
const maxAcceptLanguageLength = 300;

/** The language of mails to the caller: Russian unless the browser prefers English. */
export function languageOf(context: ApiContext): MailLanguage {
  if (context.get('accept-language').length > maxAcceptLanguageLength) return 'ru';
  return context.acceptsLanguages('ru', 'en') === 'en' ? 'en' : 'ru';
}

export function deviceOf(context: ApiContext): DeviceDescription {
  return describeUserAgent(context.get('user-agent'));
}

/** Where a call comes from, for mails and the audit log. */
export function originOf(context: ApiContext): Required<MailOrigin> {
  return { address: context.ip, device: formatDevice(deviceOf(context)) };
}
