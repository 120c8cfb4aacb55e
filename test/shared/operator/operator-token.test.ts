import test from 'ava';
import { hasBearerToken, hasPassword } from '../../../shared/operator/operator-token.ts';

const token = 'operator-token-0123456789abcdef:x';
const basic = (credentials: string): string => `Basic ${Buffer.from(credentials).toString('base64')}`;

test('a bearer token is accepted in any case of the scheme, and only as a whole', (t) => {
  t.true(hasBearerToken(`Bearer ${token}`, token));
  t.true(hasBearerToken(`bearer  ${token}`, token));
  for (const wrong of [
    '',
    'Bearer',
    'Bearer ',
    token,
    `Bearer ${token}x`,
    `Bearer ${token.slice(1)}`,
    basic(`a:${token}`),
  ])
    t.false(hasBearerToken(wrong, token), wrong);
});

test('a password is accepted with any user name, also if it contains a colon', (t) => {
  t.true(hasPassword(basic(`admin:${token}`), token));
  t.true(hasPassword(basic(`:${token}`), token));
  for (const wrong of [
    '',
    'Basic',
    'Basic %%%',
    basic(token.replace(':', '')),
    basic(`admin:${token} `),
    `Bearer ${token}`,
  ])
    t.false(hasPassword(wrong, token), wrong);
});

test('headers that are too long are not compared', (t) => {
  const long = 'x'.repeat(5_000);
  t.false(hasBearerToken(`Bearer ${long}`, long));
  t.false(hasPassword(basic(`a:${long}`), long));
});
