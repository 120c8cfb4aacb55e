import test from 'ava';
import { readSessionHint } from '../../../api/account-area/read-session-hint.ts';

const sessions = {
  isIssued: (kind: 'access' | 'refresh', token: string) => token === `issued ${kind}`,
};
const hint = (session: string | null, refresh: string | null) =>
  readSessionHint(sessions, (cookie) => (cookie === 'session' ? session : refresh));

test('the cookies alone tell whether a page has a session, or can refresh one', (t) => {
  t.is(hint('issued access', 'issued refresh'), 'active');
  t.is(hint('issued access', null), 'active');
  t.is(hint(null, 'issued refresh'), 'expired');
  t.is(hint(null, null), 'none');
});

test('cookies that were not issued here count as none', (t) => {
  t.is(hint('issued refresh', 'issued access'), 'none');
  t.is(hint('forged', 'issued refresh'), 'expired');
  t.is(hint('', ''), 'none');
});
