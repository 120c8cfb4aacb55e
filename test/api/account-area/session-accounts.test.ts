import test from 'ava';
import { SessionAccounts } from '../../../api/account-area/session-accounts.ts';
import type { WebLink, WebSession, WebUser } from '../../../shared/account-area/web-models.ts';

/** A user with a session `valid` and the link 1, a banned one with a session `late`, and what is looked up. */
function openAccounts() {
  const lookedUp: string[] = [];
  const sessions = {
    find: async (token: string) => {
      lookedUp.push(token);
      if (token === 'late') return { userId: 'bob' } as WebSession;
      return token === 'valid' ? ({ userId: 'ann' } as WebSession) : null;
    },
  };
  const users = {
    findById: async (id: string) => ({ bannedAt: id === 'bob' ? new Date() : null }) as WebUser,
  };
  const links = {
    find: async (userId: string, linkId: number) => {
      lookedUp.push(`${userId}:${linkId}`);
      return linkId === 1 ? ({ accountId: 'account' } as WebLink) : null;
    },
  };
  return { accounts: new SessionAccounts({ sessions, users, links } as never), lookedUp };
}

test('calls of a page at the same time share one look-up, and those that follow use what it found', async (t) => {
  const { accounts, lookedUp } = openAccounts();
  const access = { token: 'valid', linkId: 1 };
  t.is(accounts.findRecent(access), undefined);
  const found = { session: { userId: 'ann' }, accountId: 'account' };
  for (const result of await Promise.all(Array.from({ length: 20 }, () => accounts.find(access))))
    t.like(result, found);
  t.like(accounts.findRecent(access), found);
  t.deepEqual(lookedUp, ['valid', 'ann:1']);
});

test('a session that has ended is looked up once, whichever accounts its calls name', async (t) => {
  const { accounts, lookedUp } = openAccounts();
  for (let linkId = 1; linkId < 20; linkId++) {
    const access = { token: 'ended', linkId };
    t.deepEqual(accounts.findRecent(access) ?? (await accounts.find(access)), {
      session: null,
      accountId: null,
    });
  }
  t.deepEqual(lookedUp, ['ended']);
});

test('an account that the user has not linked is not found', async (t) => {
  const { accounts } = openAccounts();
  const access = { token: 'valid', linkId: 2 };
  t.like(await accounts.find(access), { session: { userId: 'ann' }, accountId: null });
});

test('a session that outlived the ban of its user has ended', async (t) => {
  const { accounts } = openAccounts();
  t.deepEqual(await accounts.find({ token: 'late', linkId: 1 }), { session: null, accountId: null });
});
