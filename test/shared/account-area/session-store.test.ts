import { randomBytes, randomUUID } from 'node:crypto';
import { hashSecret } from '../../../shared/accounts/credentials.ts';
import test from 'ava';
import {
  isCurrentRefreshToken,
  maxSessions,
  SessionStore,
  type NewSession,
} from '../../../shared/account-area/session-store.ts';
import { createSessionTokens, deriveKeys } from '../../../shared/account-area/session-tokens.ts';
import { openWebDatabase, type WebDatabase } from '../../../shared/account-area/web-database-store.ts';
import type { WebSession } from '../../../shared/account-area/web-models.ts';
import { testMasterKey, useWebStores } from '../../support/use-web-stores.ts';

const openStores = useWebStores(test);
const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const device = { osName: 'Linux', browserName: 'Firefox', deviceType: 'desktop' } as const;
const address = '203.0.113.7';

const newSession = (options: Partial<NewSession> = {}): NewSession => ({
  userId: randomUUID(),
  rememberMe: false,
  device,
  address,
  ...options,
});
const ago = (ms: number): Date => new Date(Date.now() - ms);
const lifeOf = ({ createdAt, expiresAt }: WebSession): number => expiresAt.getTime() - createdAt.getTime();

test('a session is found by its access token, with the values with which it was started', async (t) => {
  const { sessions } = await openStores(t);
  const options = newSession({ now: ago(1_000) });
  const { session, accessToken } = await sessions.start(options);
  t.deepEqual(await sessions.find(accessToken), session);
  t.like(session, { userId: options.userId, ...device, ipCreated: address, ipLastUsed: address });
  t.deepEqual(await sessions.list(options.userId), [session]);
});

test('a session lasts 24 hours, or 30 days with rememberMe, and its access token 15 minutes', async (t) => {
  const { sessions } = await openStores(t);
  const short = await sessions.start(newSession());
  const long = await sessions.start(newSession({ rememberMe: true }));
  t.is(lifeOf(short.session), 24 * hourMs);
  t.is(lifeOf(long.session), 30 * 24 * hourMs);
  for (const { session } of [short, long]) {
    t.is(session.accessExpiresAt.getTime() - session.createdAt.getTime(), 15 * minuteMs);
  }
});

test('an expired access token grants no access, but its session can still be refreshed', async (t) => {
  const { sessions } = await openStores(t);
  const { session, accessToken, refreshToken } = await sessions.start(
    newSession({ now: ago(16 * minuteMs) }),
  );
  t.is(await sessions.find(accessToken), null);
  const refreshed = await sessions.refresh(refreshToken, address);
  t.is(refreshed.kind, 'refreshed');
  if (refreshed.kind !== 'refreshed') return;
  t.is((await sessions.find(refreshed.accessToken))?._id, session._id);
});

test('an expired session grants no access, is not listed, cannot be refreshed or revoked, and is not reported as a replay', async (t) => {
  const { sessions } = await openStores(t);
  const { session, accessToken, refreshToken } = await sessions.start(newSession({ now: ago(25 * hourMs) }));
  t.is(await sessions.find(accessToken), null);
  t.deepEqual(await sessions.list(session.userId), []);
  t.false(await sessions.revoke(session.userId, session._id));
  for (let i = 0; i < 2; i++) t.deepEqual(await sessions.refresh(refreshToken, address), { kind: 'unknown' });
});

test('a refresh replaces all three tokens and extends the same session by its lifetime', async (t) => {
  const { sessions } = await openStores(t);
  for (const rememberMe of [false, true]) {
    const started = await sessions.start(newSession({ rememberMe, now: ago(hourMs) }));
    const refreshed = await sessions.refresh(started.refreshToken, '203.0.113.8');
    t.is(refreshed.kind, 'refreshed');
    if (refreshed.kind !== 'refreshed') return;
    const { session, accessToken, csrfToken } = refreshed;
    t.is(session._id, started.session._id);
    t.deepEqual(session.createdAt, started.session.createdAt);
    t.is(session.ipCreated, address);
    t.is(session.ipLastUsed, '203.0.113.8');
    t.is(session.expiresAt.getTime() - session.lastUsedAt.getTime(), (rememberMe ? 30 * 24 : 24) * hourMs);
    t.deepEqual(await sessions.find(accessToken), session);
    t.is(await sessions.find(started.accessToken), null);
    t.true(sessions.isCsrfToken(session, csrfToken));
    t.is(sessions.csrfTokenOf(session), csrfToken);
    t.false(sessions.isCsrfToken(session, started.csrfToken));
  }
});

test('a random CSRF token that a process of the last release issued is valid until the next refresh, beside the derived one', async (t) => {
  const { sessions } = await openStores(t);
  const { session } = await sessions.start(newSession());
  const random = 'a'.repeat(43);
  const issuedBefore = { ...session, csrfHash: hashSecret(random) };
  t.true(sessions.isCsrfToken(issuedBefore, random));
  t.true(sessions.isCsrfToken(issuedBefore, sessions.csrfTokenOf(session)));
  t.false(sessions.isCsrfToken(session, random));
  // What a process of the last release compares with.
  t.is(session.csrfHash, hashSecret(sessions.csrfTokenOf(session)));
});

test('a refresh of a session that was already looked up takes only one more query, and fails if the session has ended since', async (t) => {
  const { mongo } = await openStores(t);
  const database = openWebDatabase(mongo);
  let calls = 0;
  const call: WebDatabase['call'] = async (work) => {
    calls += 1;
    return await database.call(work);
  };
  const sessions = new SessionStore({ ...database, call }, { masterKey: testMasterKey });
  const { session, refreshToken } = await sessions.start(newSession());
  calls = 0;
  const found = (await sessions.findByRefreshToken(refreshToken))!;
  const refreshed = await sessions.refresh(refreshToken, address, found);
  t.is(refreshed.kind, 'refreshed');
  t.is(calls, 2);
  await sessions.revoke(session.userId, session._id);
  t.deepEqual(await sessions.refresh(refreshToken, address, found), { kind: 'unknown' });
});

test('if a refresh is aborted after any of its database calls, the old tokens stay valid', async (t) => {
  const stores = await openStores(t);
  const database = openWebDatabase(stores.mongo);
  const { session, accessToken, refreshToken } = await stores.sessions.start(newSession());
  for (const callsBefore of [1, 2]) {
    const late = new AbortController();
    let calls = 0;
    const call: WebDatabase['call'] = async (work) => {
      const result = await database.call(work);
      calls += 1;
      if (calls === callsBefore) late.abort(new Error('told to try again'));
      return result;
    };
    const sessions = new SessionStore({ ...database, call }, { masterKey: testMasterKey });
    const refreshing = sessions.refresh(refreshToken, '203.0.113.8', undefined, late.signal);
    await t.throwsAsync(refreshing, { message: 'told to try again' }, `after ${callsBefore}`);
    t.like(await sessions.find(accessToken), { _id: session._id, expiresAt: session.expiresAt });
  }
  t.is((await stores.sessions.refresh(refreshToken, address)).kind, 'refreshed');
});

test('of 20 parallel refreshes with one token, one succeeds, and another ends the session as a replay', async (t) => {
  const { sessions } = await openStores(t);
  const { session, refreshToken } = await sessions.start(newSession());
  // All refreshes find the session before the first one replaces its tokens.
  const found = (await sessions.findByRefreshToken(refreshToken))!;
  const results = await Promise.all(
    Array.from({ length: 20 }, () => sessions.refresh(refreshToken, address, found)),
  );
  const refreshed = results.filter((result) => result.kind === 'refreshed');
  t.is(refreshed.length, 1);
  // The replay is in the user's audit log only once.
  t.is(results.filter(({ kind }) => kind === 'replayed').length, 1);
  t.is(await sessions.find(refreshed[0]!.accessToken), null);
  t.deepEqual(await sessions.refresh(refreshed[0]!.refreshToken, address), { kind: 'unknown' });
  t.deepEqual(await sessions.list(session.userId), []);
});

test('a replayed refresh token ends its session, including for the holder of the current token, and no other session', async (t) => {
  const { sessions } = await openStores(t);
  const options = newSession();
  const other = await sessions.start(options);
  const { session, refreshToken } = await sessions.start(options);
  const current = await sessions.refresh(refreshToken, address);
  t.is(current.kind, 'refreshed');
  if (current.kind !== 'refreshed') return;
  const replayed = await sessions.refresh(refreshToken, '198.51.100.9');
  t.is(replayed.kind, 'replayed');
  if (replayed.kind === 'replayed') t.is(replayed.session._id, session._id);
  t.is(await sessions.find(current.accessToken), null);
  t.deepEqual(await sessions.refresh(refreshToken, address), { kind: 'unknown' });
  t.deepEqual(
    (await sessions.list(options.userId)).map(({ _id }) => _id),
    [other.session._id],
  );
});

test('a made-up token does not query MongoDB', async (t) => {
  const refuse = (): never => {
    throw new Error('MongoDB was asked');
  };
  const database = { call: refuse, models: refuse, createIndexes: refuse };
  const sessions = new SessionStore(database, { masterKey: testMasterKey });
  const foreign = createSessionTokens(randomUUID(), deriveKeys('another-master-key-0123456789abcdef'));
  const own = createSessionTokens(randomUUID(), deriveKeys(testMasterKey));
  for (const token of [
    '',
    'mg',
    randomBytes(64).toString('base64url'),
    foreign.accessToken,
    own.refreshToken,
  ]) {
    t.is(await sessions.find(token), null);
  }
  for (const token of ['', randomBytes(64).toString('base64url'), foreign.refreshToken, own.accessToken]) {
    t.deepEqual(await sessions.refresh(token, address), { kind: 'unknown' });
  }
  await t.throwsAsync(sessions.find(own.accessToken), { message: 'MongoDB was asked' });
});

test('the stored session contains none of its tokens', async (t) => {
  const { sessions, mongo } = await openStores(t);
  const started = await sessions.start(newSession());
  const refreshed = await sessions.refresh(started.refreshToken, address);
  t.is(refreshed.kind, 'refreshed');
  if (refreshed.kind !== 'refreshed') return;
  const stored = JSON.stringify(await mongo.db.collection('web_sessions').find({}).toArray());
  for (const { accessToken, refreshToken, csrfToken } of [started, refreshed]) {
    for (const token of [accessToken, refreshToken, csrfToken]) {
      // Neither the whole token nor its random part is stored.
      t.false(stored.includes(token.slice(0, 40)));
      t.false(stored.includes(token.slice(22, 60)));
    }
  }
});

test('a session is revoked immediately, and only by its user', async (t) => {
  const { sessions } = await openStores(t);
  const { session, accessToken, refreshToken } = await sessions.start(newSession());
  t.false(await sessions.revoke(randomUUID(), session._id));
  t.truthy(await sessions.find(accessToken));
  t.true(await sessions.revoke(session.userId, session._id));
  t.is(await sessions.find(accessToken), null);
  t.deepEqual(await sessions.refresh(refreshToken, address), { kind: 'unknown' });
  t.false(await sessions.revoke(session.userId, session._id));
});

test('a session is found by its current refresh token or by a replaced one, and only the current one passes isCurrentRefreshToken', async (t) => {
  const { sessions } = await openStores(t);
  const { session, accessToken, refreshToken } = await sessions.start(newSession());
  for (const token of ['', 'x', accessToken, `${refreshToken}x`])
    t.is(await sessions.findByRefreshToken(token), null);
  t.deepEqual(await sessions.findByRefreshToken(refreshToken), session);
  t.true(isCurrentRefreshToken(session, refreshToken));
  await sessions.refresh(refreshToken, '203.0.113.8');
  t.false(isCurrentRefreshToken((await sessions.findByRefreshToken(refreshToken))!, refreshToken));
});

test('all or listed sessions of a user can be revoked, but never those of another user', async (t) => {
  const { sessions } = await openStores(t);
  const foreignSession = await sessions.start(newSession());
  const options = newSession();
  const [remainingSession] = await Promise.all(Array.from({ length: 3 }, () => sessions.start(options)));
  const ids = (await sessions.listIdsIfOpen(remainingSession!.session))!;
  t.is(ids.length, 3);
  const others = ids.filter((id) => id !== remainingSession!.session._id);
  t.is(await sessions.revokeListed(options.userId, [...others, foreignSession.session._id]), 2);
  t.deepEqual(await sessions.list(options.userId), [remainingSession!.session]);
  t.is(await sessions.revokeAll(options.userId), 1);
  t.deepEqual(await sessions.list(options.userId), []);
  t.truthy(await sessions.find(foreignSession.accessToken));
});

test('a session that has ended gets no list of sessions, so its requests cannot end sessions that start later', async (t) => {
  const { sessions } = await openStores(t);
  const options = newSession();
  const [own, expired] = [
    await sessions.start(options),
    await sessions.start({ ...options, now: ago(25 * hourMs) }),
  ];
  t.deepEqual(
    await sessions.listIdsIfOpen(own.session),
    [own.session._id],
    'expired sessions are not listed',
  );
  t.is(await sessions.listIdsIfOpen(expired.session), null);
  await sessions.revokeAll(options.userId);
  await sessions.start(options);
  t.is(await sessions.listIdsIfOpen(own.session), null);
});

test('the last use of a session is recorded at most once per minute', async (t) => {
  const { sessions } = await openStores(t);
  const { session, accessToken } = await sessions.start(newSession({ now: ago(2 * minuteMs) }));
  await sessions.touch(session, '203.0.113.8');
  const touched = await sessions.find(accessToken);
  t.is(touched?.ipLastUsed, '203.0.113.8');
  t.true(touched!.lastUsedAt > session.lastUsedAt);
  // This also holds if a process read the session before another process recorded its use.
  for (const read of [session, touched!]) await sessions.touch(read, '203.0.113.9');
  t.deepEqual(await sessions.find(accessToken), touched);
});

test('sessions are listed most recently used first', async (t) => {
  const { sessions } = await openStores(t);
  const options = newSession();
  const ids: string[] = [];
  for (const minutes of [9, 5, 7]) {
    const { session } = await sessions.start({ ...options, now: ago(minutes * minuteMs) });
    ids.push(session._id);
  }
  const listed = (await sessions.list(options.userId)).map(({ _id }) => _id);
  t.deepEqual(listed, [ids[1]!, ids[2]!, ids[0]!]);
});

test('a user has at most 50 sessions: a new one replaces the least recently used', async (t) => {
  const { sessions } = await openStores(t);
  const options = newSession();
  const started = [];
  for (let i = 0; i < maxSessions; i++) {
    started.push(await sessions.start({ ...options, now: ago((100 - i) * 1_000) }));
  }
  await Promise.all(started.map(async ({ accessToken }) => t.truthy(await sessions.find(accessToken))));
  const last = await sessions.start(options);
  t.is(await sessions.find(started[0]!.accessToken), null);
  t.truthy(await sessions.find(started[1]!.accessToken));
  t.truthy(await sessions.find(last.accessToken));
  t.is((await sessions.list(options.userId)).length, maxSessions);
});
