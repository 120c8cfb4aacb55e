import test from 'ava';
import { serviceNameOf, readMailSender } from '../../../../shared/platform/config/mail-sender.ts';

test('the service has the name in MAIL_FROM, or is called Model Gateway if that is only an address', (t) => {
  const nameOf = (mailFrom: string): string => serviceNameOf(readMailSender(mailFrom)!);
  t.is(nameOf('"Example AI" <no-reply@example.com>'), 'Example AI');
  t.is(nameOf('no-reply@example.com'), 'Model Gateway');
  t.is(nameOf('<no-reply@example.com>'), 'Model Gateway');
});
