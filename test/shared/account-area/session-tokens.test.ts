import { randomBytes, randomUUID } from 'node:crypto';
import test from 'ava';
import {
  createSessionTokens,
  deriveKeys,
  hashTokens,
  readToken,
} from '../../../shared/account-area/session-tokens.ts';
import { testMasterKey } from '../../support/use-web-stores.ts';

const keys = deriveKeys(testMasterKey);

test('a session id and the hash to store can be derived from a token', (t) => {
  const id = randomUUID();
  const tokens = createSessionTokens(id, keys);
  const { accessHash, refreshHash, csrfHash } = hashTokens(tokens);
  t.deepEqual(readToken('access', tokens.accessToken, keys), { sessionId: id, hash: accessHash });
  t.deepEqual(readToken('refresh', tokens.refreshToken, keys), { sessionId: id, hash: refreshHash });
  t.is(new Set([...Object.values(tokens), accessHash, refreshHash, csrfHash]).size, 6);
});

test('a token of one kind is not valid as the other', (t) => {
  const { accessToken, refreshToken } = createSessionTokens(randomUUID(), keys);
  t.is(readToken('refresh', accessToken, keys), null);
  t.is(readToken('access', refreshToken, keys), null);
});

test('a token issued under another master key is rejected', (t) => {
  const { accessToken } = createSessionTokens(randomUUID(), deriveKeys(`${testMasterKey}-of-another`));
  t.is(readToken('access', accessToken, keys), null);
});

test('a token with any bit changed is rejected', (t) => {
  const bytes = Buffer.from(createSessionTokens(randomUUID(), keys).accessToken, 'base64url');
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const changed = Buffer.from(bytes);
    changed[bit >> 3]! ^= 1 << (bit & 7);
    t.is(readToken('access', changed.toString('base64url'), keys), null, `bit ${bit}`);
  }
});

test('text without the exact form of a token is rejected, even if it decodes to the bytes of one', (t) => {
  const { accessToken } = createSessionTokens(randomUUID(), keys);
  const last = accessToken.at(-1)!;
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  const sameBytes = alphabet[alphabet.indexOf(last) + 1]!;
  const otherSpelling = accessToken.slice(0, -1) + sameBytes;
  t.deepEqual(Buffer.from(otherSpelling, 'base64url'), Buffer.from(accessToken, 'base64url'));
  const others = ['', ' ', `${accessToken}=`, ` ${accessToken}`, accessToken.slice(1), '%'.repeat(86)];
  for (const token of [otherSpelling, ...others, randomBytes(64).toString('base64url'), 'ы'.repeat(86)]) {
    t.is(readToken('access', token, keys), null);
  }
});
