import type { MailLanguage, MailOrigin } from '../../../shared/web/mail.ts';
import { describeUserAgent, nameDevice, type DeviceDescription } from '../../../shared/web/user-agent.ts';
import type { ApiContext } from '../../middleware/request-context.ts';

/** Longer ones are no browser's, and reading them takes a while. */
const longestAcceptLanguage = 300;

/** The language of mails to the caller: Russian unless the browser prefers English. */
export function languageOf(context: ApiContext): MailLanguage {
  if (context.get('accept-language').length > longestAcceptLanguage) return 'ru';
  return context.acceptsLanguages('ru', 'en') === 'en' ? 'en' : 'ru';
}

export function deviceOf(context: ApiContext): DeviceDescription {
  return describeUserAgent(context.get('user-agent'));
}

/** Where a call comes from, as mails and the audit log say it. */
export function originOf(context: ApiContext): Required<MailOrigin> {
  return { address: context.ip, device: nameDevice(deviceOf(context)) };
}
